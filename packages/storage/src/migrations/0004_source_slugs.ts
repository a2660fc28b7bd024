import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Slugs: a source's URL may contain a name that its owner has chosen, instead of the id. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // Unique among the sources of all teams, because all have one ingress. The slug of a deleted source is free again.
  `alter table sources add column slug text collate "C"`,
  `create unique index sources_slug on sources (slug) where deleted_at is null and slug is not null`
]
