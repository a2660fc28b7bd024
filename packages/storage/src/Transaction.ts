import { Effect, Schedule } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { fault } from "@tidegate/telemetry/Faults"
import { isSessionLost, isTransient } from "./Database.ts"

/**
 * Errors after which the same transaction may succeed: it lost a deadlock or its session, or another one was first (a name that
 * was taken between look-up and write is found by the next look-up).
 */
const passing: ReadonlySet<string> = new Set(["DeadlockError", "SerializationError", "UniqueViolation"])

/** Fails a transaction so that it is repeated from its beginning, because the rows that it read have changed meanwhile. */
export const overtaken = (message: string): SqlError.SqlError =>
  new SqlError.SqlError({ reason: new SqlError.SerializationError({ message, cause: undefined }) })

/** Converts the SQL failures of a control call for its caller; the cause is only logged. */
const toGatewayError = (cause: SqlError.SqlError): Effect.Effect<never, GatewayError> =>
  Effect.flip(
    isTransient(cause)
      ? fault({
          code: "QUEUE_UNAVAILABLE",
          message: "the database could not be reached; repeat the request",
          log: "a control call was given up: the database does not answer in time",
          cause,
          level: "Warn"
        })
      : fault({
          code: "INTERNAL_ERROR",
          message: "the request could not be carried out",
          log: "a control call failed in the database",
          cause
        })
  )

const again = {
  while: (error: GatewayError | SqlError.SqlError) =>
    SqlError.isSqlError(error) && (passing.has(error.reason._tag) || isSessionLost(error)),
  times: 5,
  schedule: Schedule.jittered(Schedule.exponential("20 millis"))
}

/**
 * Runs statements that change nothing, or one statement, which is a transaction on its own. Never inside a transaction: a failed
 * statement there ends it, and only the whole can be repeated.
 */
export const query = <A, R>(
  effect: Effect.Effect<A, GatewayError | SqlError.SqlError, R>
): Effect.Effect<A, GatewayError, R> => Effect.catchTag(Effect.retry(effect, again), "SqlError", toGatewayError)

/**
 * Runs a control call's statements in one transaction. It is repeated when it lost a deadlock or its session, so it has to have
 * the same result when it was committed already.
 */
export const transaction =
  (sql: SqlClient.SqlClient) =>
  <A, R>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, R>): Effect.Effect<A, GatewayError, R> =>
    query(sql.withTransaction(effect))
