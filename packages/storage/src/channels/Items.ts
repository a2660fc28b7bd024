import { hash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Item } from "@tidegate/channels/Adapter"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"

const dayMs = 86_400_000

/** How long an item is recognised when it comes again (ms). */
export const itemsKeptMs = 30 * dayMs

/** Where items come from. `pair_key`: of their trigger, so that a poll and a notification about the same item are one. */
export interface ItemsOf {
  readonly team_id: string
  readonly source_id: string
  readonly pair_key: string
  /** Null: a poll found them. */
  readonly subscription_id: string | null
  readonly mode: "instant" | "polling"
  /** Unix ms. */
  readonly now: number
}

const keyOf = (pairKey: string, id: string): Buffer => hash("sha256", `${pairKey}\0${id}`, "buffer")

/**
 * Stores items that wait to become requests, in the caller's transaction; returns how many of them are new. The ids of their requests
 * are in the order of the items.
 */
export const storeItems = Effect.fnUntraced(function* (
  { mode, now, pair_key, source_id, subscription_id, team_id }: ItemsOf,
  items: ReadonlyArray<Item>
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  if (items.length === 0) return 0
  const sql = yield* SqlClient.SqlClient
  const keys = new Map(items.map((item) => [keyOf(pair_key, item.id).toString("hex"), item]))
  const requests = Array.from(keys, () => newId(prefixes.request, now)).sort()
  const stored = yield* sql`
    insert into channel_items (source_id, key, team_id, request_id, subscription_id, mode, body, occurred_at, received_at, expires_at)
    select ${source_id}, decode(i.key, 'hex'), ${team_id}, i.request_id, ${subscription_id}, ${mode}, i.body, i.occurred_at,
      ${new Date(now)}, ${new Date(now + itemsKeptMs)}
    from unnest(
      ${Columns.text([...keys.keys()])}, ${Columns.text(requests)}, ${Columns.text(Array.from(keys.values(), ({ body }) => body))},
      ${Columns.timestamptz(Array.from(keys.values(), ({ occurredAt }) => occurredAt))}
    ) as i (key, request_id, body, occurred_at)
    order by i.key
    on conflict (source_id, key) do nothing returning 1`
  return stored.length
})
