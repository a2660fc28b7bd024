import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs that begin because another one has failed. The previous version begins none, and reads none of it. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // What became of the on-failure workflow when the run failed last; null: nothing yet.
  yield* sql`alter table workflow_runs add column on_failure jsonb`
  // The on-failure workflow of workflows that name none. It may have been deleted since.
  yield* sql`alter table teams add column on_failure_workflow_id text collate "C"`
})
