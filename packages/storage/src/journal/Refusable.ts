import { Effect } from "effect"
import { SqlError } from "effect/sql"

/** A record that cannot be encoded is treated as one that the database refuses. */
export const refusable = <A>(commit: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, SqlError.SqlError> =>
  Effect.catchDefect(commit, (cause) =>
    Effect.fail(
      new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause, message: "a record could not be encoded" }) })
    )
  )
