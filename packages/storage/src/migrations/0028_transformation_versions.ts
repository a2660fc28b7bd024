import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Earlier code of transformations: a workflow run uses the code that a transformation had when the run began. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // "superseded_at": when other code replaced this one. No run is older than 60 days.
  yield* sql`create table transformation_versions (
    transformation_id text collate "C" not null references transformations (id),
    code_hash text not null,
    team_id text collate "C" not null references teams (id),
    code text not null,
    superseded_at timestamptz not null,
    primary key (transformation_id, code_hash)
  )`
})
