import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What runs that no request began have in the place of one. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // The columns of a request that steps read.
  `create table workflow_inputs (
    run_id text collate "C" primary key,
    team_id text collate "C" not null,
    method text not null,
    path text not null,
    query text not null,
    headers text not null,
    body bytea not null,
    created_at timestamptz not null
  ) partition by range (run_id)`
]
