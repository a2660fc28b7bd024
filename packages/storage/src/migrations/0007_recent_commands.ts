import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The latest commands that wrote a resource, the newest first. `last_command` held only one: a command that was repeated after another one
 * had written undid the change of that one. Processes of the previous version still write that column; a later migration may drop it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["sources", "destinations", "connections", "transformations"]) {
    yield* sql`alter table ${sql(table)} add column recent_commands text[] not null default '{}'`
  }
})
