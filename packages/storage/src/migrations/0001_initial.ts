import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The first schema. Ids are text in byte order (collation "C"). Tables that grow without bound are partitioned
 * by the day that each id contains (see Partitions.ts).
 *
 * Hot rows: `events` is updated once per attempt. No index covers a column that a successful delivery changes, so that
 * update is heap-only. For the same reason the delivery queue is not an index over `events` but a table of its own,
 * `deliveries`. It has one small row per pending event, and the commit that finishes the event deletes that row.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create table settings (name text primary key, value text not null)`,

  `create table teams (
    id text collate "C" primary key,
    name text not null,
    created_at timestamptz not null default now()
  )`,

  // The API key is stored as its SHA-256 hash. The signing secrets are encrypted.
  `create table project_secrets (
    team_id text collate "C" primary key references teams (id),
    api_key_hash text not null unique,
    api_key_masked text not null,
    api_key_rotated_at timestamptz not null default now(),
    signing_secret text not null,
    signing_secret_masked text not null,
    signing_secret_rotated_at timestamptz not null default now(),
    previous_signing_secret text,
    previous_signing_secret_until timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,

  // "version" counts the changes of everything that ingress uses to route: the source, its connections, their destinations.
  // A commit of requests names the version that routed them. Rows routed by an older version are returned, to be routed again.
  `create table sources (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text,
    type text not null,
    config jsonb not null,
    auth text,
    version bigint not null default 1,
    disabled_at timestamptz,
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index sources_name on sources (team_id, name) where deleted_at is null`,
  `create index sources_created on sources (team_id, created_at, id)`,

  // "cancel_before": all events that were pending before this time are CANCELLED, even if their rows do not show it yet.
  `create table destinations (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text,
    type text not null,
    config jsonb not null,
    auth text,
    disabled_at timestamptz,
    cancel_before timestamptz,
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index destinations_name on destinations (team_id, name) where deleted_at is null`,
  `create index destinations_created on destinations (team_id, created_at, id)`,

  // "resumed_at": when the connection was last unpaused. An event that was pending before is delivered with trigger UNPAUSE.
  // "disabled_by": "source" if disabling the source also disabled the connection. Enabling the source then enables it again.
  `create table connections (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text,
    source_id text collate "C" not null references sources (id),
    destination_id text collate "C" not null references destinations (id),
    rules jsonb not null,
    disabled_at timestamptz,
    disabled_by text,
    paused_at timestamptz,
    resumed_at timestamptz,
    cancel_before timestamptz,
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index connections_name on connections (team_id, name) where deleted_at is null`,
  `create index connections_source on connections (source_id) where deleted_at is null`,
  `create index connections_destination on connections (destination_id)`,
  `create index connections_created on connections (team_id, created_at, id)`,

  // "headers" is a JSON object with lower-case names; a repeated header is an array. Its type is text, because it is always
  // read as a whole. "body" is null if it was too large to store, or if retention removed it. An empty body is not null.
  `create table requests (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    source_id text collate "C" not null,
    status text not null,
    verified boolean not null,
    rejection_cause text,
    method text not null,
    path text not null,
    query text not null,
    headers text not null,
    body bytea,
    body_size integer not null,
    external_id text,
    original_ip text,
    events_count integer not null,
    ignored_count integer not null,
    cli_events_count integer not null default 0,
    retry_kind text,
    retry_parent_request_id text collate "C",
    retry_operation_id text collate "C",
    retried_at timestamptz,
    ingested_at timestamptz not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  ) partition by range (id)`,
  `create index requests_team on requests (team_id, id)`,
  `create index requests_source on requests (source_id, id)`,
  `create index requests_rejected on requests (team_id, id) where status = 'rejected'`,
  `create index requests_external on requests (team_id, external_id text_pattern_ops) where external_id is not null`,
  `create index requests_operation on requests (retry_operation_id, id) where retry_operation_id is not null`,

  // "state": PENDING, SUCCESSFUL, FAILED or CANCELLED; SCHEDULED, QUEUED and HOLD follow from a pending event's due
  // time and its connection (see EventStatus.ts). "failed" is true for FAILED and CANCELLED. It is the only outcome with an
  // index, because a successful delivery does not change this column.
  `create table events (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    request_id text collate "C" not null,
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    destination_id text collate "C" not null,
    event_data_id text collate "C",
    state text not null,
    failed boolean not null default false,
    trigger text not null,
    attempts integer not null default 0,
    due_at timestamptz,
    response_status integer,
    error_code text,
    failure_message text,
    first_attempt_at timestamptz,
    last_attempt_at timestamptz,
    successful_at timestamptz,
    cancelled_at timestamptz,
    root_event_id text collate "C",
    retry_kind text,
    retry_parent_event_id text collate "C",
    retry_operation_id text collate "C",
    retried_at timestamptz,
    ingested_at timestamptz not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  ) partition by range (id)`,
  `create index events_team on events (team_id, id)`,
  `create index events_source on events (source_id, id)`,
  `create index events_connection on events (connection_id, id)`,
  `create index events_destination on events (destination_id, id)`,
  `create index events_failed on events (team_id, id) where failed`,
  `create index events_retries on events (request_id) where retry_parent_event_id is not null`,
  `create index events_operation on events (retry_operation_id, id) where retry_operation_id is not null`,

  // One row per pending event. The rows of (shard, destination, connection) form a connection queue, ordered by due time.
  // "started_at": when a delivery under way used a rate permit of its destination.
  `create table deliveries (
    event_id text collate "C" primary key,
    shard smallint not null,
    destination_id text collate "C" not null,
    connection_id text collate "C" not null,
    due_at timestamptz not null,
    started_at timestamptz
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
          autovacuum_vacuum_cost_delay = 0)`,
  `create index deliveries_due on deliveries (shard, destination_id, connection_id, due_at, event_id)`,
  `create index deliveries_connection on deliveries (connection_id)`,

  // Routing jobs: requests about which a connection with slow rules (deduplicate, transform) still has to decide.
  `create table pending_routes (
    shard smallint not null,
    connection_id text collate "C" not null,
    request_id text collate "C" not null,
    team_id text collate "C" not null,
    source_id text collate "C" not null,
    created_at timestamptz not null,
    primary key (connection_id, request_id)
  ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
          autovacuum_vacuum_cost_delay = 0)`,
  `create index pending_routes_shard on pending_routes (shard, connection_id, request_id)`,

  // A row is written once, when the attempt has ended, into the partition of its event's day.
  `create table attempts (
    id text collate "C" not null,
    team_id text collate "C" not null,
    event_id text collate "C" not null,
    request_id text collate "C" not null,
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    destination_id text collate "C" not null,
    attempt_number integer not null,
    trigger text not null,
    status text not null,
    response_status integer,
    error_code text,
    body bytea,
    response_headers text,
    requested_url text not null,
    http_method text not null,
    bulk_retry_id text collate "C",
    successful_at timestamptz,
    delivered_at timestamptz not null,
    responded_at timestamptz,
    delivery_latency integer not null,
    response_latency integer,
    created_at timestamptz not null,
    primary key (event_id, attempt_number)
  ) partition by range (event_id)`,
  `create index attempts_team on attempts (team_id, id)`,
  `create index attempts_destination on attempts (destination_id, id)`,

  `create table ignored_events (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    request_id text collate "C" not null,
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    cause text not null,
    meta jsonb not null,
    created_at timestamptz not null
  ) partition by range (id)`,
  `create index ignored_events_team on ignored_events (team_id, id)`,
  `create index ignored_events_connection on ignored_events (connection_id, id)`,

  // Counts per minute, written by the statement that writes the counted rows. Each writer has a "slot" of its own, so that
  // writers do not wait for each other; readers add the slots up. "measure": accepted, rejected (by source); created, successful,
  // failed, cancelled (by connection, in the minute the event was created); ignored (by connection); attempt_successful,
  // attempt_failed (by destination). "key_id" is the id of that source, connection or destination.
  `create table rollups (
    key_id text collate "C" not null,
    measure text not null,
    minute timestamptz not null,
    slot smallint not null,
    team_id text collate "C" not null,
    count bigint not null,
    primary key (key_id, measure, minute, slot)
  ) with (fillfactor = 70)`
]
