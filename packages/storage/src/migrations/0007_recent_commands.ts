import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Which commands wrote a resource lately, the latest first. `last_command` was one of them alone, so that a command that came again after
 * another had written undid it. Processes of the version before still write that column; the next migration may drop it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const table of ["sources", "destinations", "connections", "transformations"]) {
    yield* sql`alter table ${sql(table)} add column recent_commands text[] not null default '{}'`
  }
})
