import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Values that the steps of a workflow store by key. An expired value counts as none until retention deletes it. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table workflow_values (
    workflow_id text collate "C" not null references workflows (id),
    team_id text collate "C" not null references teams (id),
    key text collate "C" not null,
    value json not null,
    updated_at timestamptz not null,
    expires_at timestamptz,
    primary key (workflow_id, key)
  )`
  yield* sql`create index workflow_values_expires on workflow_values (expires_at) where expires_at is not null`
  yield* sql`create index workflow_values_team on workflow_values (team_id)`
})
