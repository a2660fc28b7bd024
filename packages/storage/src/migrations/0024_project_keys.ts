import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The keys of teams, what has been decided about them, and whether a team's first key obeys its scopes. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // Of the key its HMAC by the pepper of that version. "legacy": the team's API key, which stands in project_secrets; null: all grants, the usual limit.
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

  // One row of each process that has decided so within those five minutes: it writes what it has counted, and writing it again changes nothing.
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

  // A team that has a key already goes on as before until its operator says otherwise.
  `alter table teams add column key_policy_cutover text not null default 'complete'
    check (key_policy_cutover in ('pending', 'complete'))`,
  `update teams set key_policy_cutover = 'pending' where id in (select team_id from project_secrets)`
]
