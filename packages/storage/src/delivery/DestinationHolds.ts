import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"

/**
 * Stores until when (Unix ms) a destination's target takes nothing more, unless what is stored is later. Whoever is not its owner any more
 * may write it all the same: it is what the target has said. Answers whether it is stored now.
 */
export const storeHold = Effect.fnUntraced(function* (
  id: string,
  until: number
): Effect.fn.Return<boolean, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const at = new Date(until)
  const rows = yield* sql`
    update destinations set held_until = ${at}
    where id = ${id} and deleted_at is null and (held_until is null or held_until < ${at}) returning id`
  return rows.length > 0
})
