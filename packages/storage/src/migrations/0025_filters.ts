import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Stored filters. The connections whose rules link one are found by the index of their rules. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "conditions" is kept as it was written, "hash" is what the version is known by.
  `create table filters (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    conditions json not null,
    hash text not null,
    recent_commands text[] not null default '{}',
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index filters_name on filters (team_id, name) where deleted_at is null`,
  `create index filters_created on filters (team_id, created_at, id)`
]
