import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The user whose change created a version of a workflow. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Null: changed with an API key, or by the previous version. The value outlives the user.
  yield* sql`alter table workflow_versions add column created_by_user_id text collate "C"`
})
