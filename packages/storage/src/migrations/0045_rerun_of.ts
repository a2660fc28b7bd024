import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The run that a run repeats. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table workflow_runs add column rerun_of text collate "C"`
})
