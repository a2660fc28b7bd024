import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** A name for a source's URL that its owner has chosen, beside its id. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // Unique among the sources of all teams, because all have one ingress; a deleted source's is free again.
  `alter table sources add column slug text collate "C"`,
  `create unique index sources_slug on sources (slug) where deleted_at is null and slug is not null`
]
