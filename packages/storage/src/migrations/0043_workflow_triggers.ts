import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What begins runs of workflows beside requests. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `alter table workflows add column triggers jsonb`,

  // What began the run; null: a request.
  `alter table workflow_runs add column trigger text`,

  // "due_at": the next occurrence that has begun no run; null: there is none. A schedule that is not active is not looked at.
  `create table workflow_schedules (
    workflow_id text collate "C" not null references workflows (id),
    team_id text collate "C" not null references teams (id),
    cron text not null,
    timezone text not null,
    missed text not null,
    active boolean not null,
    due_at timestamptz,
    primary key (workflow_id, cron, timezone)
  ) with (fillfactor = 70)`,
  `create index workflow_schedules_due on workflow_schedules (due_at) where active and due_at is not null`,
  `create index workflow_schedules_team on workflow_schedules (team_id)`,

  // The run that others with the same key repeat, if they were begun before "expires_at".
  `create table workflow_keys (
    workflow_id text collate "C" not null,
    key text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    run_id text collate "C" not null,
    expires_at timestamptz not null,
    primary key (workflow_id, key)
  ) with (fillfactor = 70)`,
  `create index workflow_keys_expires on workflow_keys (expires_at)`,
  `create index workflow_keys_team on workflow_keys (team_id)`
]
