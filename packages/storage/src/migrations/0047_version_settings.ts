import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What a version of a workflow has beside its definition, so that versions can be compared. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Null: the version was made before this column, or by the previous version of the gateway.
  yield* sql`alter table workflow_versions add column settings jsonb`
})
