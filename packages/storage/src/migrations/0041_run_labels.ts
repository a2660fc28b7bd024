import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Labels of runs. A version has the template that its runs go by; a run has its label from its first journal entry on. Processes of the
 * previous version write none.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table workflows add column run_label text`
  yield* sql`alter table workflow_versions add column run_label text`
  yield* sql`alter table workflow_runs add column label text`
})
