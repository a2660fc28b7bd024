import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** How much of a source's ingest limit has been given out in its current period. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // Beside it, "rollups" have a measure more: "limited" (by source), requests over the limit, of which nothing else is stored.
  // Not in "sources": that row is what every commit of a request looks at. "revision" is raised by each owner that takes it over.
  `create table source_periods (
    source_id text collate "C" primary key,
    team_id text collate "C" not null,
    started_at timestamptz not null,
    ends_at timestamptz not null,
    leased bigint not null,
    revision bigint not null
  ) with (fillfactor = 50)`
]
