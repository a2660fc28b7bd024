import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Inputs of runs that no stored request began: a run that was begun again with a changed request, for example. `request_id` of such a
 * run is its own id.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table workflow_inputs (
    run_id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    method text not null,
    path text not null,
    query text not null,
    headers text not null,
    body bytea not null,
    body_size integer not null,
    ingested_at timestamptz not null,
    expires_at timestamptz not null
  )`
  yield* sql`create index workflow_inputs_expires on workflow_inputs (expires_at)`
})
