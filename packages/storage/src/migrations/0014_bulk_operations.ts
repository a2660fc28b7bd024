import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Retries of many requests or events at once. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "filter" selects the records, with absolute times. "plan_cursor": the cursor at which planning continues in the filtered list.
  // "expires_at": when a finished operation is deleted.
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

  // The records that an operation still has to retry. The transaction that retries a record deletes its row, so each is retried exactly once.
  `create table bulk_targets (
    operation_id text collate "C" not null references bulk_operations (id) on delete cascade,
    target_id text collate "C" not null,
    team_id text collate "C" not null,
    primary key (operation_id, target_id)
  ) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)`
]
