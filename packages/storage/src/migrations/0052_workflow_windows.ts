import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs of workflows that wait for a later one of the same key, which takes their place. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "run_id": the latest run of the key, which was made at "run_at", and is carried out at "due_at". "opened_at": when the first one of
  // the key was made.
  `create table workflow_windows (
    workflow_id text collate "C" not null,
    key text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    run_id text collate "C" not null,
    run_at timestamptz not null,
    opened_at timestamptz not null,
    due_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (workflow_id, key)
  ) with (fillfactor = 70)`,
  `create index workflow_windows_expires on workflow_windows (expires_at)`,
  `create index workflow_windows_team on workflow_windows (team_id)`
]
