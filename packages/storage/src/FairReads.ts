import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { isTimedOut, ReadSemaphores, ReportSql } from "./Database.ts"

/** Runs reads under the team's fair semaphore. */
export const asList =
  (team: string) =>
  <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E | GatewayError, R | ReadSemaphores> =>
    Effect.flatMap(ReadSemaphores, ({ lists }) => lists.during(team)(read))

/**
 * Runs reads that may take the database long (counts, series, summaries, searches, exports) on one of the reports' own connections, under
 * the team's fair semaphore. A statement that exceeds its time-out becomes 503 `QUEUE_UNAVAILABLE`, with advice how to ask for less.
 */
export const asReport =
  (team: string) =>
  <A, E, R>(
    read: Effect.Effect<A, E | SqlError.SqlError, R>
  ): Effect.Effect<
    A,
    E | GatewayError | SqlError.SqlError,
    Exclude<R, SqlClient.SqlClient> | ReadSemaphores | ReportSql
  > =>
    Effect.gen(function* () {
      const { reports } = yield* ReadSemaphores
      const sql = yield* ReportSql
      const onOne = Effect.flatMap(sql.session, (connection) =>
        Effect.provideService(
          Effect.provideService(read, SqlClient.SqlClient, sql),
          sql.transactionService,
          // No transaction begins: each statement sees what was committed before it.
          [connection, 0]
        )
      )
      return yield* reports.during(team)(Effect.scoped(onOne))
    }).pipe(
      Effect.catchIf(
        (error) => SqlError.isSqlError(error) && isTimedOut(error),
        () =>
          Effect.fail(
            fail(
              "QUEUE_UNAVAILABLE",
              "this takes the database too long: take a shorter range or fewer filters, or repeat it later"
            )
          )
      )
    )
