import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import { HotSql } from "./Database.ts"
import { payloadGone } from "./Tables.ts"

/** A request as a workflow step gets it: the sender's credentials are masked. */
export interface LookedUp extends StoredHead {
  readonly id: string
  readonly source_id: string
  readonly ingested_at: Date
  /** Null: it is longer than requested, or gone. */
  readonly body: Uint8Array | null
  readonly body_size: number
}

/** Null when the team has no such request, or retention has removed its payload. */
export const lookUpRequest = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  bytes: number
): Effect.fn.Return<LookedUp | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<LookedUp>`
    select id, source_id, method, path, query, headers, ingested_at, body_size,
      case when body_size <= ${bytes} then body end as body
    from requests where id = ${id} and team_id = ${team_id} and headers <> ${payloadGone}`
  return row ?? null
})
