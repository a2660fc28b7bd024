import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Deletions of teams. The previous version knows none: it refuses a team in deletion because its members and keys are gone. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `alter table teams add column deleting_since timestamptz`,

  // "id": of the team, which this row outlives. "at_table", "at_block": what the pass looks at next; null: it begins. "found": the rows
  // that the pass has deleted so far. "pass_at": the pass does not begin earlier. "deleted": the rows deleted so far, by table.
  `create table team_deletions (
    id text collate "C" primary key,
    requested_by text collate "C",
    requested_at timestamptz not null,
    stage text not null default 'stopping' check (stage in ('stopping', 'removing', 'checking', 'done')),
    at_table text,
    at_block bigint not null default 0,
    found bigint not null default 0,
    pass_at timestamptz,
    deleted jsonb not null default '{}',
    finished_at timestamptz
  ) with (fillfactor = 50)`,
  `create index team_deletions_open on team_deletions (requested_at, id) where finished_at is null`,
  `create index team_deletions_listed on team_deletions (requested_at, id)`
]
