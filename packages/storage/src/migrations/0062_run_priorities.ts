import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The priority of runs that wait for their turn. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `alter table workflow_turns add column priority int2 not null default 0`,
  // The version before orders without it. It sorts the rows of a key then, of which there are 10,000 at most.
  `create index workflow_turns_line on workflow_turns (workflow_id, key, priority desc, created_at, run_id) where not taken`,
  `drop index workflow_turns_waiting`
]
