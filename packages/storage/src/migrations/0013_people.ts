import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Who signs in, what they are to teams, and their sessions. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // A person is who the issuer says by "subject"; what else it tells of them changes. "named": by themselves.
  `create table users (
    id text collate "C" primary key,
    issuer text collate "C" not null,
    subject text collate "C" not null,
    email text,
    email_verified boolean not null default false,
    name text,
    named boolean not null default false,
    picture_url text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    unique (issuer, subject)
  )`,

  `create table memberships (
    team_id text collate "C" not null references teams (id),
    user_id text collate "C" not null references users (id),
    role text not null check (role in ('owner', 'member')),
    created_at timestamptz not null,
    primary key (team_id, user_id)
  )`,
  `create index memberships_user on memberships (user_id)`,

  // "team_id": what a call without a team acts on. The token is kept as its SHA-256.
  `create table sessions (
    token_hash text collate "C" primary key,
    user_id text collate "C" not null references users (id),
    team_id text collate "C" not null references teams (id),
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  // The key that a start has last found configured: one that is rotated is not undone by the next start. Null: by the version before.
  `alter table project_secrets add column configured_key_hash text`,
  `update project_secrets set configured_key_hash = api_key_hash`,
  `create index sessions_user on sessions (user_id, created_at)`,
  `create index sessions_expiry on sessions (expires_at)`
]
