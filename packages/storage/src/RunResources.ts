import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "./journal/Columns.ts"

/** What a step names, as it was when its run began. Destinations and credentials are read as they are when they are used. */
export interface NamedResource {
  readonly id: string
  readonly name: string
  readonly content_hash: string
  readonly updated_at: Date
}

/** What each kind is made of: a transformation is its code, a destination its type and settings (sealed, where they are). */
const contents = {
  [prefixes.destination]: ["destinations", "encode(sha256(convert_to(type || ' ' || config::text, 'UTF8')), 'hex')"],
  [prefixes.transformation]: ["transformations", "code_hash"],
  [prefixes.filter]: ["filters", "hash"]
} as const

/** Those of the team that are there. */
export const namedResources = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<NamedResource>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const found: Array<NamedResource> = []
  for (const [prefix, [table, hash]] of Object.entries(contents)) {
    const own = ids.filter((id) => id.startsWith(prefix))
    if (own.length === 0) continue
    const rows = yield* sql<NamedResource>`
      select id, name, ${sql.literal(hash)} as content_hash, updated_at from ${sql(table)}
      where id = any(${Columns.text(own)}) and team_id = ${team_id} and deleted_at is null`
    found.push(...rows)
  }
  return found
})
