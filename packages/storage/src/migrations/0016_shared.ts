import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Shares and fixtures. They are copies in tables of their own, so that they outlive their requests, which retention deletes. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // The token is stored as its SHA-256 hash. "snapshot" is redacted JSON, and null once revoked. After "forgotten_at" the row is deleted.
  yield* sql`create table request_shares (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    request_id text collate "C" not null,
    token_hash text collate "C" not null unique,
    title text,
    snapshot text,
    access_count bigint not null default 0,
    last_accessed_at timestamptz,
    expires_at timestamptz not null,
    revoked_at timestamptz,
    forgotten_at timestamptz not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
  ) with (fillfactor = 90)`
  yield* sql`create index request_shares_forgotten on request_shares (forgotten_at)`

  // A complete copy of the request. Its credentials are encrypted for the address of "original_request_id".
  yield* sql`create table request_fixtures (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text,
    source_id text collate "C" not null references sources (id),
    original_request_id text collate "C" not null,
    method text not null,
    path text not null,
    query text not null,
    headers text not null,
    presented text,
    body bytea not null,
    verified boolean not null,
    external_id text,
    original_ip text,
    replay_count integer not null default 0,
    last_replayed_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`
  yield* sql`create index request_fixtures_team on request_fixtures (team_id, id)`
  yield* sql`create index request_fixtures_source on request_fixtures (source_id, id)`
})
