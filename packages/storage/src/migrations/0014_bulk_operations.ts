import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Retries of many requests or events at once. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "filter" is what it is of, in absolute times. "plan_cursor" is where the plan goes on: that of the list which the filter narrows.
  // "expires_at" is when a finished one is forgotten.
  `create table bulk_operations (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    type text not null,
    status text not null default 'PLANNED',
    filter jsonb not null,
    requested_by text,
    shard smallint not null,
    plan_cursor text,
    total_count integer not null default 0,
    queued_count integer not null default 0,
    failed_count integer not null default 0,
    created_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    expires_at timestamptz
  ) with (fillfactor = 50)`,
  `create index bulk_operations_ongoing on bulk_operations (shard) where finished_at is null`,
  `create index bulk_operations_team on bulk_operations (team_id, type, id)`,
  `create index bulk_operations_over on bulk_operations (expires_at) where expires_at is not null`,

  // What an operation has still to retry. A row goes with the transaction that retries it, so that nothing is retried twice, or never.
  `create table bulk_targets (
    operation_id text collate "C" not null references bulk_operations (id) on delete cascade,
    target_id text collate "C" not null,
    team_id text collate "C" not null,
    primary key (operation_id, target_id)
  ) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)`
]
