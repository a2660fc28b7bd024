import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"

/**
 * Stores until when (Unix ms) a destination's target accepts no deliveries, unless a later time is stored. A former owner may
 * write it too, because it is what the target has answered. Returns whether it is stored.
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
