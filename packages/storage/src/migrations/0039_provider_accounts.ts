import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Accounts at providers, their tokens, and the consents that are under way. Tokens are claimed like those of destinations, so that only one process at a
 * time refreshes them. "revocation" is the result of the last revocation. A consent is found by the hash of its state, and belongs to the session that began it.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create table provider_accounts (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    provider_key text not null,
    name text not null,
    connection text not null,
    base_url text not null,
    email text,
    external_account_id text,
    scopes text[] not null default '{}',
    credentials text,
    held text,
    claim text,
    claimed_until timestamptz,
    token_expires_at timestamptz,
    last_error text,
    failed_at timestamptz,
    disabled_at timestamptz,
    revoked_at timestamptz,
    revocation json,
    version integer not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create index provider_accounts_team on provider_accounts (team_id, name, id)`,
  `create table provider_consents (
    state_hash text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    account_id text collate "C" not null,
    begun_by text not null,
    consent text,
    expires_at timestamptz not null
  )`,
  `create index provider_consents_expires on provider_consents (expires_at)`,
  `create index provider_consents_team on provider_consents (team_id)`
]
