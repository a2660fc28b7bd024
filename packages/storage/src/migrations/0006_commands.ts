import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which command wrote a resource last, so that the same one changes nothing when it comes again. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["sources", "destinations", "connections", "transformations"]) {
    // Null: written by no command, or by one of a version before this.
    yield* sql`alter table ${sql(table)} add column last_command text`
  }
})
