import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Choice } from "@tidegate/model/ActionCatalog"

/** What of a team can be chosen by its name. */

/** Where a page goes on: behind this one. */
export interface Behind {
  readonly name: string
  readonly id: string
}

interface Asked {
  /** Part of a name or an id, in whatever case. */
  readonly query: string
  readonly behind: Behind | null
  readonly limit: number
}

/** One more than asked for tells that there are more. */
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
