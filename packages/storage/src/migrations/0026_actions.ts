import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Saved actions with their versions: a run uses the version that an action had when the run began. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create table actions (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    provider_key text not null,
    action_key text not null,
    config json not null,
    credentials text,
    version integer not null,
    recent_commands text[] not null default '{}',
    disabled_at timestamptz,
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index actions_name on actions (team_id, name) where deleted_at is null`,
  `create index actions_created on actions (team_id, created_at, id)`,

  // "superseded_at": when the next version replaced this one. No run is older than 60 days.
  `create table action_versions (
    action_id text collate "C" not null references actions (id),
    version integer not null,
    team_id text collate "C" not null references teams (id),
    schema_version text not null,
    inputs json not null,
    content_hash text not null,
    superseded_at timestamptz,
    primary key (action_id, version)
  )`
]
