import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Steps that wait for a request at a source, and what has arrived for the waiting steps of a workflow. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // A request that arrived from "since" on, and before "expires_at", ends the wait when it matches the filter.
  `create table workflow_waits (
    run_id text collate "C" not null,
    step_id text collate "C" not null,
    workflow_id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null references sources (id),
    filter json,
    since timestamptz not null,
    expires_at timestamptz not null,
    primary key (run_id, step_id)
  )`,
  `create index workflow_waits_workflow on workflow_waits (workflow_id, source_id)`,
  `create index workflow_waits_source on workflow_waits (source_id)`,
  `create index workflow_waits_team on workflow_waits (team_id)`,
  `create index workflow_waits_expires on workflow_waits (expires_at)`,

  // The workflows whose steps wait at a source: ingress reads them with the source.
  `create table workflow_awaited (
    source_id text collate "C" not null references sources (id),
    workflow_id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    used_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (source_id, workflow_id)
  ) with (fillfactor = 50)`,
  `create index workflow_awaited_team on workflow_awaited (team_id)`,
  `create index workflow_awaited_expires on workflow_awaited (expires_at)`,

  // "about": a request that may end waits, or "<run>/<step>" of a new wait, for which the requests since its begin are looked at.
  // "again_at": when to look once more.
  `create table workflow_arrivals (
    workflow_id text collate "C" not null,
    about text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    shard int2 not null,
    due_at timestamptz not null,
    again_at timestamptz,
    expires_at timestamptz not null,
    primary key (workflow_id, about)
  )`,
  `create index workflow_arrivals_due on workflow_arrivals (shard, workflow_id, due_at)`,
  `create index workflow_arrivals_team on workflow_arrivals (team_id)`,
  `create index workflow_arrivals_expires on workflow_arrivals (expires_at)`
]
