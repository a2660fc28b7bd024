import { Effect, Schema } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Notification, Subscription } from "@tidegate/channels/Adapter"
import type { Counts } from "@tidegate/channels/machine/Facts"
import { listedBefore } from "@tidegate/channels/pollers/Listing"
import { dayMs, forgottenAfterMs } from "@tidegate/channels/machine/Times"
import type { GatewayError } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { transaction } from "../Transaction.ts"
import { channelEvent, type ChannelEvent } from "./ChannelEvents.ts"
import { countStatement } from "./ChannelMetrics.ts"
import { storeItems } from "./Items.ts"

/*
 * What providers send to the callbacks of subscriptions. The sender is answered after the commit. The channel's row is locked before
 * the subscription's, and the counts come last, as in the commits of its actor.
 */

/** The subscription that a callback belongs to, with what its adapter needs. */
export interface CalledSubscription extends Subscription {
  readonly team_id: string
  readonly source_id: string
  readonly adapter: string
  readonly definition_key: string
  readonly state: string
  /** Of its source's present settings. */
  readonly provider_key: string
  readonly inputs: Schema.JsonObject
}

/** The states in which a subscription may still get notifications. A superseded one gets them until it is stopped. */
export const livingStates = ["requested", "verifying", "active", "superseded"]
const living: ReadonlySet<string> = new Set(livingStates)

/** Whether the provider may still send notifications to it. */
export const isLiving = ({ state }: { readonly state: string }): boolean => living.has(state)

interface Row extends Omit<CalledSubscription, "secret" | "expiresAt" | "lastMessageNumber" | "ended"> {
  readonly token_hash: string
  readonly secrets: string
  readonly expires_at: Date | null
  readonly stop_at: Date | null
  readonly last_message_number: bigint | null
}

const numberOf = (stored: bigint | null): number | null => (stored === null ? null : Number(stored))

/** The subscriptions with these hashes of tokens, by hash. "unreadable": its secret cannot be decrypted. */
export const calledSubscriptions = Effect.fnUntraced(function* (
  hashes: ReadonlyArray<string>
): Effect.fn.Return<
  ReadonlyMap<string, CalledSubscription | "unreadable">,
  SqlError.SqlError,
  SqlClient.SqlClient | Secrets
> {
  const sql = yield* SqlClient.SqlClient
  const sealed = sealedColumn(yield* Secrets, "channel_subscriptions", "secrets")
  const rows = yield* sql<Row>`
    select c.id, c.team_id, c.source_id, c.adapter, c.definition_key, c.target, c.token_hash, c.secrets, c.state, c.expires_at, c.stop_at,
      c.external_channel_id as "externalChannelId", c.external_resource_id as "externalResourceId", c.last_message_number,
      coalesce(s.config->'provider'->>'provider_key', '') as provider_key, coalesce(s.config->'provider'->'inputs', '{}') as inputs
    from channel_subscriptions c join sources s on s.id = c.source_id and s.team_id = c.team_id
    where c.token_hash = any(${Columns.text(hashes)})`
  const found = new Map<string, CalledSubscription | "unreadable">()
  for (const { expires_at, last_message_number, secrets, stop_at, token_hash, ...row } of rows) {
    const { secret } = yield* sealed.show(row, secrets)
    // Fails closed: without its secret nothing can be verified.
    if (typeof secret !== "string" || secret === "") {
      found.set(token_hash, "unreadable")
      continue
    }
    found.set(token_hash, {
      ...row,
      secret,
      ended: stop_at !== null || !isLiving(row),
      expiresAt: expires_at?.getTime() ?? null,
      lastMessageNumber: numberOf(last_message_number)
    })
  }
  return found
})

/** A notification that has something to store. Refusals are stored by `storeRefusals`. */
export type Storable = Exclude<Notification, { readonly kind: "ping" | "rejected" }>

/** A notification, as its adapter reads it. */
export interface Arrived {
  readonly notification: Storable
  /** Of the trigger. */
  readonly pairKey: string
  /** Unix ms. */
  readonly receivedAt: number
}

/** `isDue`: the channel's actor has something to do by it. "ended": the subscription has ended, and nothing is stored. */
export type Stored = { readonly isDue: boolean } | "ended"

interface State {
  /** Of the channel's polls; null: the notification has no items, or no poll has been made. */
  readonly cursor: unknown
  readonly state: string
  readonly verified_at: Date | null
  readonly last_notification_at: Date | null
  readonly last_message_number: bigint | null
}

/** Stores a notification in one transaction. */
export const storeNotification = Effect.fnUntraced(function* (
  called: CalledSubscription,
  arrived: Arrived
): Effect.fn.Return<Stored, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(storing(called, arrived))
})

const storing = Effect.fnUntraced(function* (
  called: CalledSubscription,
  { notification, pairKey, receivedAt }: Arrived
): Effect.fn.Return<Stored, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { id, source_id } = called
  const [row] = yield* sql<State>`
    select u.state, u.verified_at, u.last_notification_at, u.last_message_number,
      ${notification.kind === "items" ? sql`c.state -> 'cursor'` : sql`null`} as cursor
    from channels c join channel_subscriptions u on u.source_id = c.source_id
    where c.source_id = ${source_id} and u.id = ${id}
    for update of c, u`
  if (row === undefined || !isLiving(row)) return "ended"
  const to: To = { ...row, called, now: receivedAt }
  switch (notification.kind) {
    case "handshake":
      yield* verified(to, notification)
      break
    case "items":
      yield* withItems(to, pairKey, notification)
      break
    case "dirty":
      yield* dirty(to, notification)
      break
    case "lifecycle":
      yield* lifecycle(to, notification)
  }
  return { isDue: !(notification.kind === "handshake" && notification.withinCreation === true) }
})

/** The subscription that a notification is for, as its row is now. */
interface To extends State {
  readonly called: CalledSubscription
  /** Unix ms. */
  readonly now: number
}

type Of<Kind extends Notification["kind"]> = Extract<Notification, { readonly kind: Kind }>

const event = (
  { called: { id, source_id, team_id }, now }: To,
  told: Pick<ChannelEvent, "kind" | "severity" | "message"> & Partial<ChannelEvent>
) => channelEvent({ team_id, source_id, subscription_id: id, error_code: null, details: {}, ...told }, now)

const isUnverified = ({ state }: To): boolean => state === "requested" || state === "verifying"

/** The changes that a notification makes: assignments of its subscription and of its channel, and counts. */
interface Change {
  readonly subscription: Statement.Fragment | null
  readonly channel: Statement.Fragment | null
  readonly counts: Counts
}

/**
 * Writes the changes of a notification, in one statement and as the last one, because it locks the counts. It raises the version of the channel, so
 * that a step that the actor decided earlier is decided again.
 */
const change = Effect.fnUntraced(function* ({ called, now }: To, { channel, counts, subscription }: Change) {
  const sql = yield* SqlClient.SqlClient
  const { id, source_id, team_id } = called
  yield* sql`
    with changed as (
      update channels set version = version + 1${channel === null ? sql.literal("") : sql`, ${channel}`}
      where source_id = ${source_id}
    )${
      subscription === null
        ? sql.literal("")
        : sql`, subscribed as (update channel_subscriptions set ${subscription} where id = ${id})`
    }
    ${countStatement(sql, [{ team_id, source_id, counts, now }])!}`
})

/**
 * The channel's actor has something to do: a poll if it is dirty. A poll clears the mark that it began with, so every notification
 * leaves another mark, in the same millisecond too.
 */
const due = (sql: SqlClient.SqlClient, { now }: To, isDirty: boolean): Statement.Fragment => {
  const at = new Date(now)
  return sql`due_at = least(due_at, ${at}), updated_at = ${at}, dirty_at = case when ${isDirty}
    then greatest(${at}, dirty_at + interval '1 millisecond') else dirty_at end`
}

/** The provider has verified the callback, and may have granted a lease. */
const verified = Effect.fnUntraced(function* (to: To, { expiresAt = null, withinCreation }: Of<"handshake">) {
  const sql = yield* SqlClient.SqlClient
  // A repeated handshake writes no further events: whoever knows the URL can send as many as they like.
  if (isUnverified(to) && to.verified_at === null) {
    yield* event(to, {
      kind: "handshake_verified",
      severity: "info",
      message: "The provider has verified the callback"
    })
  }
  const subscription = sql`
    state = case when ${withinCreation === true} then state else 'active' end,
    verified_at = coalesce(verified_at, ${new Date(to.now)}),
    expires_at = coalesce(${expiresAt === null ? null : new Date(expiresAt)}, expires_at)`
  yield* change(to, {
    // A superseded one keeps its state: it is going to be stopped.
    subscription: to.state === "superseded" ? null : subscription,
    // Within its creation the actor waits for the answer of the provider, which says whether there is a subscription.
    channel: withinCreation === true ? null : due(sql, to, false),
    counts: { handshakes: 1 }
  })
})

const withItems = Effect.fnUntraced(function* (to: To, pair_key: string, { items, occurredAt }: Of<"items">) {
  const { id, source_id, team_id } = to.called
  const of = { team_id, source_id, pair_key, subscription_id: id, mode: "instant", now: to.now } as const
  const isOld = listedBefore(to.cursor)
  const added = yield* storeItems(
    of,
    items.filter((item) => !isOld(item.id))
  )
  const isRepeated = items.length > 0 && added === 0
  yield* genuine(to, { messageNumber: null, occurredAt, isDirty: false, isRepeated })
})

const dirty = Effect.fnUntraced(function* (to: To, { messageNumber, occurredAt }: Of<"dirty">) {
  const last = numberOf(to.last_message_number)
  // A poll after a later message has already found the items of this one.
  const isRepeated = messageNumber !== null && last !== null && messageNumber <= last
  yield* genuine(to, { messageNumber, occurredAt, isDirty: !isRepeated, isRepeated })
})

interface Genuine {
  readonly messageNumber: number | null
  readonly occurredAt: number | null
  readonly isDirty: boolean
  readonly isRepeated: boolean
}

/** Notes that a genuine notification has come. The number of the last message only grows, because messages may overtake each other. */
const genuine = Effect.fnUntraced(function* (to: To, { isDirty, isRepeated, messageNumber, occurredAt }: Genuine) {
  const sql = yield* SqlClient.SqlClient
  if (to.last_notification_at === null) {
    yield* event(to, { kind: "first_notification", severity: "info", message: "The first notification has come" })
  }
  const message = messageNumber === null ? null : BigInt(messageNumber)
  yield* change(to, {
    subscription: sql`
      last_notification_at = greatest(last_notification_at, ${new Date(to.now)}),
      last_message_number = greatest(last_message_number, ${message}::int8)`,
    channel: due(sql, to, isDirty),
    counts: acceptedCounts(to, occurredAt, isRepeated)
  })
})

const lifecycle = Effect.fnUntraced(function* (to: To, { reason, what }: Of<"lifecycle">) {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(to.now)
  const isEnded = what === "revoked" || what === "denied"
  if (isEnded) {
    const isDenied = what === "denied" && isUnverified(to)
    yield* event(to, {
      kind: isDenied ? "handshake_rejected" : "subscription_revoked",
      severity: "error",
      message: reason,
      ...(isDenied ? { error_code: "SUBSCRIPTION_DENIED" } : {})
    })
  }
  const ended = sql`
    state = 'revoked', last_error = ${reason.slice(0, 500)}, stopped_at = ${at}, stop_at = null,
    forgotten_at = ${new Date(to.now + forgottenAfterMs)}`
  yield* change(to, {
    subscription: isEnded ? ended : what === "reauthorize" ? sql`renew_at = ${at}` : null,
    channel: due(sql, to, what === "missed"),
    counts: { notifications_received: 1 }
  })
})

/** Counts of a genuine notification; the latency only where the provider says when it happened. */
const acceptedCounts = ({ now }: To, occurredAt: number | null, isRepeated: boolean): Counts => ({
  notifications_received: 1,
  notifications_accepted: 1,
  ...(isRepeated ? { notifications_duplicate: 1 } : {}),
  ...(occurredAt === null
    ? {}
    : {
        notification_latency_ms: Math.round(Math.min(Math.max(0, now - occurredAt), dayMs)),
        notification_latency_samples: 1
      })
})
