import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Notification } from "@tidegate/channels/Adapter"
import { minuteMs } from "@tidegate/channels/machine/Times"
import type { GatewayError } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { query } from "../Transaction.ts"
import { type ChannelEvent, channelEvents } from "./ChannelEvents.ts"
import { countStatement } from "./ChannelMetrics.ts"
import { type CalledSubscription, livingStates } from "./Notifications.ts"

/** A message for a subscription that its adapter has refused. */
export interface Refusal {
  readonly called: Pick<CalledSubscription, "id" | "source_id" | "team_id">
  readonly kind: "notification_rejected" | "handshake_rejected"
  readonly reason: string
  /** Unix ms. */
  readonly receivedAt: number
}

/** The kind and the reason of a refused notification. Null: it is not refused. */
export const refusalOf = (notification: Notification): Pick<Refusal, "kind" | "reason"> | null => {
  if (notification.kind === "rejected") return { kind: "notification_rejected", reason: notification.reason }
  if (notification.kind !== "handshake" || notification.accepted) return null
  return { kind: "handshake_rejected", reason: notification.reason ?? "The callback was not confirmed" }
}

/** The refusals of one kind for one subscription, with the last one's reason and time. */
interface AddedUp extends Refusal {
  readonly n: number
}

const addedUp = (refusals: ReadonlyArray<Refusal>): ReadonlyArray<AddedUp> => {
  const sums = new Map<string, AddedUp>()
  for (const refusal of refusals) {
    const key = `${refusal.kind} ${refusal.called.id}`
    sums.set(key, { ...refusal, n: (sums.get(key)?.n ?? 0) + 1 })
  }
  return [...sums.values()]
}

const sums = new Rows<AddedUp>("r", [
  ["source_id", "text", ({ called }) => called.source_id],
  ["subscription_id", "text", ({ called }) => called.id],
  ["kind", "text", ({ kind }) => kind],
  ["n", "int8", ({ n }) => BigInt(n)],
  ["since", "timestamptz", ({ receivedAt }) => receivedAt - minuteMs]
])

const eventOf = ({ called: { id, source_id, team_id }, kind, n, reason, receivedAt }: AddedUp) => ({
  team_id,
  source_id,
  subscription_id: id,
  kind,
  severity: "warning" as const,
  message: reason,
  error_code: null,
  details: { count: n } satisfies ChannelEvent["details"],
  now: receivedAt
})

/**
 * Stores that messages were refused, in one statement: a subscription gets one event a minute with the number of messages, because
 * whoever knows the URL can send as many as they like. Two processes that begin a minute at once may write an event each. A refused
 * message changes nothing of the channel, so it does not wait for the channel's actor.
 */
export const storeRefusals = Effect.fnUntraced(function* (
  refusals: ReadonlyArray<Refusal>
): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = addedUp(refusals)
  const counted = rows.flatMap(({ called: { source_id, team_id }, kind, n, receivedAt }) =>
    kind === "handshake_rejected"
      ? []
      : [{ team_id, source_id, counts: { notifications_received: n, notifications_rejected: n }, now: receivedAt }]
  )
  yield* query(sql`
    with refused as (
      select r.* from ${sums.unnest(sql, rows)}
      where exists (
        select from channel_subscriptions u where u.id = r.subscription_id and u.state = any(${Columns.text(livingStates)}))
    ),
    latest as (
      select last.id, r.subscription_id, r.kind, r.n from refused r cross join lateral (
        select e.id from channel_events e
        where e.source_id = r.source_id and e.kind = r.kind and e.subscription_id = r.subscription_id and e.created_at > r.since
        order by e.id desc limit 1
      ) last
    ),
    held as (select e.id from channel_events e where e.id in (select id from latest) order by e.id for update),
    added as (
      update channel_events e set details = json_build_object('count', (e.details->>'count')::int8 + l.n)
      from latest l join held h on h.id = l.id where e.id = l.id
    ),
    told as (
      ${sql.literal(channelEvents.insertInto("channel_events", ""))} ${channelEvents.unnest(sql, rows.map(eventOf))}
      where exists (select from refused r where r.subscription_id = e.subscription_id and r.kind = e.kind)
        and not exists (select from latest l where l.subscription_id = e.subscription_id and l.kind = e.kind)
    )
    ${countStatement(sql, counted, sql`m.source_id in (select source_id from refused)`) ?? sql`select`}`)
})
