import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Who asked for the change that made a version of a workflow. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Null: an API key, or the version before this. It outlives the user.
  yield* sql`alter table workflow_versions add column created_by_user_id text collate "C"`
})
