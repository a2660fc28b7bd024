import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Choice } from "@tidegate/model/ActionCatalog"

/** The resources of a team that can be found by name. */

/** The position after which a page starts. */
export interface Behind {
  readonly name: string
  readonly id: string
}

interface Asked {
  /** Part of a name or an id; case does not matter. */
  readonly query: string
  readonly behind: Behind | null
  readonly limit: number
}

/** One more than the limit shows that there are more. */
export const named = Effect.fnUntraced(function* (
  team_id: string,
  table: "sources" | "destinations",
  { behind, limit, query }: Asked
): Effect.fn.Return<ReadonlyArray<Choice>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Choice>`
    select id, name, type as description from ${sql(table)}
    where team_id = ${team_id} and deleted_at is null
      and (strpos(lower(name), lower(${query})) > 0 or strpos(id, lower(${query})) > 0)
      and ${behind === null ? sql`true` : sql`(name collate "C", id) > (${behind.name}, ${behind.id})`}
    order by name collate "C", id limit ${limit}`
})
