import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What workflows name, by an index; and what lets go of versions and of deleted rows that nothing goes by. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

/** The same index, without what is deleted. */
const anew = ([table, by]: readonly [table: string, by: string]): ReadonlyArray<string> => [
  `drop index ${table}_${by}`,
  `create index ${table}_${by} on ${table} (team_id, ${by}_at, id) where deleted_at is null`
]

const statements = [
  // Of the steps, in their order, what each names, or null. Made by the database, so that rows of the version before have it too.
  `alter table workflows
    add column named jsonb not null generated always as (jsonb_path_query_array(steps, '$[*].resource_id')) stored,
    add column edges_count integer not null generated always as (jsonb_array_length(edges)) stored`,
  // Searched while others are written: nothing of it waits in a list that every search would read.
  `create index workflows_named on workflows using gin (named) with (fastupdate = off) where deleted_at is null`,

  // Whether a run has been found that goes by it: looked for once, when no other can come to.
  `alter table workflow_versions add column has_run boolean not null default false`,

  // Lists read what is there: whoever makes and deletes all day must not slow them down.
  ...anew(["workflows", "updated"]),
  ...anew(["filters", "created"]),
  ...anew(["actions", "created"])
]
