import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Transformations with their results and executions, deduplication, and the answers of proxy sources' upstreams. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "env" is a JSON object of texts, encrypted; null: none. "code_hash": SHA-256 of the code, hex.
  `create table transformations (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    code text not null,
    code_hash text not null,
    env text,
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index transformations_name on transformations (team_id, name) where deleted_at is null`,
  `create index transformations_created on transformations (team_id, created_at, id)`,
  // Finds the connections whose rules name a transformation.
  `create index connections_rules on connections using gin (rules jsonb_path_ops) where deleted_at is null`,

  // The result of a transformation for a request on one connection. The id is derived from both. "body" is null if the
  // transformation did not change the body: then the body is the request's, byte for byte ("same_body").
  `create table event_data (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    request_id text collate "C" not null,
    connection_id text collate "C" not null,
    method text not null,
    path text not null,
    query text not null,
    headers text not null,
    body bytea,
    same_body boolean not null,
    body_size integer not null,
    created_at timestamptz not null
  ) partition by range (id)`,

  // One execution of a transformation for one request on one connection; the id is derived from both. "event_id" is null
  // if there is no event; "event_data_id" is null if the execution changed nothing or failed. "failed": log_level is error or fatal.
  // "logs" is a JSON array of {type, message}; "duration" is in microseconds.
  `create table executions (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    transformation_id text collate "C" not null,
    request_id text collate "C" not null,
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    event_id text collate "C",
    event_data_id text collate "C",
    code_hash text not null,
    error_code text,
    error_message text,
    log_level text not null,
    failed boolean not null,
    logs text not null,
    duration integer not null,
    memory_bytes bigint not null,
    created_at timestamptz not null
  ) partition by range (id)`,
  `create index executions_transformation on executions (transformation_id, id)`,

  // The request that began the window of a deduplication key on a connection, and the time until which later ones are duplicates.
  `create table dedupe_keys (
    connection_id text collate "C" not null,
    key text collate "C" not null,
    request_id text collate "C" not null,
    expires_at timestamptz not null,
    primary key (connection_id, key)
  )`,
  `create index dedupe_keys_expired on dedupe_keys (expires_at)`,

  // The answer of a proxy source's upstream to one request. The id is the request's with another prefix.
  // "response_body" is cut at the source's capture limit ("response_body_truncated"). Latency in milliseconds.
  `create table proxy_exchanges (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    source_id text collate "C" not null,
    request_id text collate "C" not null,
    target_url text not null,
    http_method text not null,
    response_status integer,
    response_headers text,
    response_body bytea,
    response_body_truncated boolean not null,
    error_code text,
    error_text text,
    started_at timestamptz not null,
    responded_at timestamptz,
    response_latency integer,
    created_at timestamptz not null
  ) partition by range (id)`
]
