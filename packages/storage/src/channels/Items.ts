import { hash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Item } from "@tidegate/channels/Adapter"
import type { Mode } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import { type Replayed, type Routing, storeReplays } from "../bulk/Replays.ts"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { withPartitions } from "../retention/Partitions.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { query } from "../Transaction.ts"
import { modeHeader } from "./SourceTrigger.ts"

/*
 * The items of provider sources. An item is stored as soon as the gateway knows it: by the poll that moves the cursor on, or
 * before the notification is answered. It becomes a request later, with an id that is chosen here, so that it becomes only one.
 */

/** The time (ms) for which an item is remembered, to recognise the same one. */
const rememberedMs = 30 * dayMs

/** Where items have come from. */
export interface ItemOrigin {
  readonly team_id: string
  readonly source_id: string
  /** The trigger: an item of another trigger with the same id is another item. */
  readonly pair_key: string
  /** Null: a poll has found them. */
  readonly subscription_id: string | null
  readonly mode: Mode
  /** Unix ms. */
  readonly now: number
}

const arrived = new Rows<{ readonly item: Item; readonly request_id: string; readonly pair_key: string }>("i", [
  ["key", "bytea", ({ item, pair_key }) => hash("sha256", `${pair_key}\0${item.id}`, "buffer")],
  ["request_id", "text", ({ request_id }) => request_id],
  ["body", "text", ({ item }) => item.body],
  ["occurred_at", "timestamptz", ({ item }) => item.occurredAt]
])

/** Stores the items that are new. Returns how many are. To be called in a transaction. */
export const storeItems = Effect.fnUntraced(function* (
  origin: ItemOrigin,
  items: ReadonlyArray<Item>
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  if (items.length === 0) return 0
  const sql = yield* SqlClient.SqlClient
  const { mode, now, pair_key, source_id, subscription_id, team_id } = origin
  // Requests are made in the order of their ids, which is the order in which the ids are made here.
  const rows = items.map((item) => ({ item, request_id: newId(prefixes.request, now), pair_key }))
  // Rows are written in the order of their keys, so that no two transactions wait for each other.
  const added = yield* sql`
    insert into channel_items (source_id, key, team_id, request_id, subscription_id, mode, body, occurred_at, received_at, expires_at)
    select ${source_id}, i.key, ${team_id}, i.request_id, ${subscription_id}, ${mode}, i.body, i.occurred_at,
      ${new Date(now)}, ${new Date(now + rememberedMs)}
    from ${arrived.unnest(sql, rows)} order by i.key
    on conflict (source_id, key) do nothing returning 1`
  return added.length
})

/** Items that become requests in one transaction, and the bytes of their bodies (the first item always becomes one). */
const atOnce = 100
const bytesAtOnce = 2 * 1024 * 1024
/** The partition of an older id (ms) may be gone: the item has waited while its source was disabled. Its request gets a new id. */
const oldMs = dayMs

interface WaitingItem {
  readonly key: Uint8Array
  readonly request_id: string
  readonly subscription_id: string | null
  readonly mode: Mode
  readonly body: string
}

/** The result of a batch of items: whether there may be more, and whom the new requests concern. */
export interface Delivered extends Pick<Replayed, "connections" | "workflows"> {
  readonly items: number
  readonly more: boolean
}

/**
 * Makes requests of the oldest waiting items of a source. The requests and the mark on the items are one transaction, so that an
 * item becomes one request. While the source is disabled its items wait.
 */
export const deliverItems = Effect.fnUntraced(function* (
  { source_id, team_id }: { readonly team_id: string; readonly source_id: string },
  routing: Routing,
  now: number
): Effect.fn.Return<Delivered, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  return yield* query(
    withPartitions(sql)(
      sql.withTransaction(
        Effect.gen(function* () {
          const items = yield* sql<WaitingItem>`
            select key, request_id, subscription_id, mode, body from channel_items
            where source_id = ${source_id} and body is not null and key = any(array(
              select key from (
                select key, request_id, sum(octet_length(body)) over (order by request_id) - octet_length(body) as before
                from (
                  select key, request_id, body from channel_items
                  where source_id = ${source_id} and body is not null order by request_id limit ${atOnce}
                ) first
              ) sized where before < ${bytesAtOnce}
            ))
            order by request_id for update`
          if (items.length === 0) return nothing
          const replays = items.map((item) => ({
            team_id,
            source_id,
            id: (idTime(item.request_id) ?? 0) < now - oldMs ? newId(prefixes.request, now) : item.request_id,
            message: {
              method: "POST",
              path: "/",
              query: "",
              headers: {
                "content-type": "application/json",
                "x-gateway-channel-id": item.subscription_id ?? source_id,
                [modeHeader]: item.mode
              },
              body: Buffer.from(item.body, "utf8")
            },
            presented: null,
            presentedOf: item.request_id,
            verified: true,
            original_ip: null,
            external_id: null,
            retry: null
          }))
          const made = yield* storeReplays(replays, routing)
          const stored = made.filter((one) => typeof one === "object")
          if (stored.length < items.length) return nothing
          yield* sql`
            update channel_items set body = null
            where source_id = ${source_id} and key = any(${Columns.bytea(items.map(({ key }) => key))})`
          return {
            items: items.length,
            more: true,
            connections: [...new Set(stored.flatMap(({ connections }) => connections))],
            workflows: [...new Set(stored.flatMap(({ workflows }) => workflows))]
          }
        })
      )
    )
  )
})

const nothing: Delivered = { items: 0, more: false, connections: [], workflows: [] }

/** Drops the items that have not become requests: their source is deleted. To be called in a transaction. */
export const dropItems = Effect.fnUntraced(function* (
  source_id: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update channel_items set body = null where source_id = ${source_id} and body is not null`
})
