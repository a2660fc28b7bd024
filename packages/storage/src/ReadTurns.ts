import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { isTimedOut, ReadTurns, ReportSql } from "./Database.ts"

/** Reads in a turn of the team. */
export const inTurn =
  (team: string) =>
  <A, E, R>(read: Effect.Effect<A, E, R>): Effect.Effect<A, E | GatewayError, R | ReadTurns> =>
    Effect.flatMap(ReadTurns, ({ lists }) => lists.during(team)(read))

/**
 * Reads what may take the database long (counts, series, summaries, searches) on connections of the reports' own, in a turn of the team. What takes
 * longer than a statement may is 503 `QUEUE_UNAVAILABLE`, and says what would take less.
 */
export const asReport =
  (team: string) =>
  <A, E, R>(
    read: Effect.Effect<A, E | SqlError.SqlError, R>
  ): Effect.Effect<A, E | GatewayError | SqlError.SqlError, Exclude<R, SqlClient.SqlClient> | ReadTurns | ReportSql> =>
    Effect.gen(function* () {
      const { reports } = yield* ReadTurns
      return yield* reports.during(team)(Effect.provideService(read, SqlClient.SqlClient, yield* ReportSql))
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
