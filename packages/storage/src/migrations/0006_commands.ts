import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The last command that wrote a resource. If the same command is repeated, it changes nothing. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["sources", "destinations", "connections", "transformations"]) {
    // Null: not written by a command, or by an earlier version.
    yield* sql`alter table ${sql(table)} add column last_command text`
  }
})
