import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The API keys of teams, an audit of the decisions about them, and whether a team's first key is limited to its scopes. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "key_hmac": the HMAC of the key with the pepper of version "pepper". "legacy": the team's first API key, which is in project_secrets. A
  // null "execute_grants" allows all; a null limit is the default one.
  `create table project_api_keys (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    legacy boolean not null default false,
    lookup text collate "C" unique,
    key_hmac text collate "C",
    pepper integer,
    status text not null default 'active' check (status in ('active', 'disabled', 'revoked')),
    scopes text[] not null,
    execute_grants text[],
    rate_limit_per_minute integer check (rate_limit_per_minute between 1 and 10000),
    last_used_at timestamptz,
    revoked_at timestamptz,
    created_by_user_id text collate "C",
    created_at timestamptz not null,
    updated_at timestamptz not null,
    check (legacy = (lookup is null) and legacy = (key_hmac is null) and legacy = (pepper is null)),
    check (legacy or (execute_grants is not null and rate_limit_per_minute is not null))
  ) with (fillfactor = 70)`,
  `create index project_api_keys_team on project_api_keys (team_id, created_at desc)`,
  `create unique index project_api_keys_legacy on project_api_keys (team_id) where legacy`,

  // One row per process and decision for each five minutes, with the number of decisions. Writing the same row again changes nothing.
  `create table key_audit (
    entry uuid primary key,
    id bigint generated always as identity,
    team_id text collate "C" not null references teams (id),
    key_id text collate "C" not null,
    began_at timestamptz not null,
    route_key text not null,
    permission text not null,
    decision text not null,
    reason text,
    count integer not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
  ) with (fillfactor = 70)`,
  `create index key_audit_key on key_audit (key_id, began_at desc)`,
  `create index key_audit_expiry on key_audit (expires_at)`,

  // For a team that already has a key, nothing changes until its operator switches.
  `alter table teams add column key_policy_cutover text not null default 'complete'
    check (key_policy_cutover in ('pending', 'complete'))`,
  `update teams set key_policy_cutover = 'pending' where id in (select team_id from project_secrets)`
]
