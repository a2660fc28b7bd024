import { hash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Message } from "@tidegate/model/Message"
import { type Replay, type Replayed, type Routing, storeReplays } from "../bulk/Replays.ts"
import { Rows } from "../journal/Rows.ts"
import { withPartitions } from "../retention/Partitions.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import type { HeldSubscription } from "./SubscriptionWork.ts"

/*
 * Messages of brokers become requests. One transaction stores the requests, remembers the messages, and counts them; only then is the broker
 * told. So a message that the broker delivers again, because it was not told in time, is known.
 */

/** The time (ms) for which a message is remembered, to recognise the same one. */
export const rememberedMs = 7 * 86_400_000

/** A message that fits: the request that it becomes, and its id at the broker. */
export interface Storable {
  readonly id: string | null
  readonly message: Message
}

/** The result of a batch. Null: the source has changed, and nothing was stored. */
export interface StoredMessages extends Pick<Replayed, "connections" | "workflows"> {
  readonly stored: number
  readonly duplicates: number
}

/**
 * Equal for the same message only. The body is part of it, because ids are made by senders, and one that repeats an id must not make another
 * message vanish. The headers are not: a broker counts in them how often it has delivered the message. Null: without an id, two equal messages
 * are two.
 */
const keyOf = ({ id, message: { body } }: Storable): Buffer | null =>
  id === null ? null : hash("sha256", `${hash("sha256", body, "hex")} ${id}`, "buffer")

interface Keyed {
  readonly request_id: string
  readonly key: Buffer
}

const remembered = new Rows<Keyed>("m", [
  ["key", "bytea", ({ key }) => key],
  ["request_id", "text", ({ request_id }) => request_id]
])

/** Stores messages as requests of the source, in their order, and counts those that were rejected. */
export const storeMessages = Effect.fnUntraced(function* (
  { source_id, team_id, version }: HeldSubscription,
  messages: ReadonlyArray<Storable>,
  rejections: ReadonlyArray<string>,
  routing: Routing,
  now: number
): Effect.fn.Return<StoredMessages | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const named = messages.map((one) => ({ ...one, key: keyOf(one), request_id: newId(prefixes.request, now) }))
  const store = Effect.gen(function* () {
    // In the order in which a change of the source locks them.
    yield* sql`select from sources where id = ${source_id} for share`
    const held = yield* sql`
      select from source_subscriptions where source_id = ${source_id} and version = ${version} and due_at is not null for update`
    if (held.length === 0) return null
    const known = new Set<string>()
    const first = named.filter(({ key }) => {
      const text = key?.toString("hex")
      if (text === undefined) return true
      const isFirst = !known.has(text)
      known.add(text)
      return isFirst
    })
    const keyed = first.flatMap(({ key, request_id }) => (key === null ? [] : [{ key, request_id }]))
    const added =
      keyed.length === 0
        ? []
        : yield* sql<{ request_id: string }>`
            insert into source_messages (source_id, key, team_id, request_id, expires_at)
            select ${source_id}, m.key, ${team_id}, m.request_id, ${new Date(now + rememberedMs)}
            from ${remembered.unnest(sql, keyed)} order by m.key
            on conflict (source_id, key) do nothing returning request_id`
    const isNew = new Set(added.map(({ request_id }) => request_id))
    const replays = first
      .filter(({ key, request_id }) => key === null || isNew.has(request_id))
      .map(({ message, request_id }): Replay => ({
        id: request_id,
        team_id,
        source_id,
        message,
        presented: null,
        presentedOf: request_id,
        verified: true,
        original_ip: null,
        external_id: null,
        retry: null
      }))
    const made = replays.length === 0 ? [] : yield* storeReplays(replays, routing)
    const stored = made.filter((one) => typeof one === "object")
    // Its row was locked, and is that of an enabled source. Without its request, a message must not be remembered.
    if (stored.length < replays.length) return yield* Effect.die(new Error(`${source_id} takes no requests`))
    const duplicates = messages.length - replays.length
    yield* sql`
      update source_subscriptions set stored_count = stored_count + ${stored.length}, duplicate_count = duplicate_count + ${duplicates},
        rejected_count = rejected_count + ${rejections.length}, last_rejection = coalesce(${rejections.at(-1) ?? null}, last_rejection),
        last_message_at = ${new Date(now)}
      where source_id = ${source_id}`
    return {
      stored: stored.length,
      duplicates,
      connections: [...new Set(stored.flatMap(({ connections }) => connections))],
      workflows: [...new Set(stored.flatMap(({ workflows }) => workflows))]
    }
  })
  return yield* withPartitions(sql)(sql.withTransaction(store))
})
