import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs that wait to begin, because their workflow limits how many runs there are at once, or how many begin in a period. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // A row stays until its run ends. "key": runs with the same one share a limit. "taken": the run may go on; false: it waits.
  // "created_at": when the run was made, which is its place in the line.
  `create table workflow_turns (
    run_id text collate "C" primary key,
    team_id text collate "C" not null,
    workflow_id text collate "C" not null,
    key text collate "C" not null,
    taken boolean not null default false,
    created_at timestamptz not null
  ) with (fillfactor = 70)`,
  `create index workflow_turns_waiting on workflow_turns (workflow_id, key, created_at, run_id) where not taken`,
  `create index workflow_turns_taken on workflow_turns (workflow_id, key) where taken`
]
