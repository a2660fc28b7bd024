import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What goes wrong, the issues that are made of it, and the gateway's own events about it. The previous version writes none of it. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const vacuum =
  "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0"

const statements = [
  // The name of a type that a team may have chosen for an unknown vendor before the gateway used it.
  `update sources set type = 'WEBHOOK', version = version + 1 where type = 'SYSTEM'`,
  `create unique index sources_system on sources (team_id) where type = 'SYSTEM' and deleted_at is null`,

  // What went wrong in one batch, by kind, subject and code; deleted after some seconds. It has no index, because all rows are read.
  `create table occurrences (
    team_id text collate "C" not null,
    kind text not null,
    subject_id text collate "C" not null,
    code text not null,
    count integer not null,
    ended integer not null default 0,
    response_status integer,
    samples text[] collate "C" not null default '{}',
    ended_samples text[] collate "C" not null default '{}',
    first_at timestamptz not null,
    last_at timestamptz not null
  ) with (${vacuum})`,

  // "check_at": when the gateway looks whether deliveries succeed again; null: the issue is resolved.
  `create table issues (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    destination_id text collate "C" not null,
    error_code text not null,
    status text not null check (status in ('open', 'acknowledged', 'dismissed', 'resolved')),
    count bigint not null,
    response_status integer,
    event_ids text[] collate "C" not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    opened_at timestamptz not null,
    changed_by text collate "C",
    resolved_at timestamptz,
    check_at timestamptz,
    expires_at timestamptz not null,
    unique (destination_id, error_code)
  ) with (fillfactor = 70)`,
  `create index issues_team on issues (team_id, last_seen_at, id)`,
  `create index issues_check on issues (check_at) where check_at is not null`,
  `create index issues_expiry on issues (expires_at)`,

  // What a team is to be told of a subject. "due_at" null: nothing. "reported": the state of the subject that the team knows.
  `create table system_notices (
    team_id text collate "C" not null references teams (id),
    type text not null,
    subject_id text collate "C" not null,
    facts jsonb not null,
    reported text,
    due_at timestamptz,
    emitted_at timestamptz,
    expires_at timestamptz not null,
    primary key (subject_id, type)
  ) with (fillfactor = 70)`,
  `create index system_notices_due on system_notices (due_at) where due_at is not null`,
  `create index system_notices_emitted on system_notices (team_id, emitted_at)`,
  `create index system_notices_expiry on system_notices (expires_at)`
]
