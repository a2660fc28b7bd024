import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { EventKind, Severity } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Rows } from "../journal/Rows.ts"

/** The time (ms) for which channel events are kept. */
const keptMs = 30 * dayMs

/** Something that happened to a channel. Neither the message nor the details contain a token or a secret. */
export interface ChannelEvent {
  readonly team_id: string
  readonly source_id: string
  readonly kind: EventKind
  readonly severity: Severity
  readonly message: string
  readonly error_code: string | null
  readonly subscription_id: string | null
  readonly details: Schema.JsonObject
}

/** Messages may quote a provider. */
const maxMessage = 1_000

/** Channel events with the times (Unix ms) at which they happened. */
export const channelEvents = new Rows<ChannelEvent & { readonly now: number }>("e", [
  ["id", "text", ({ now }) => newId(prefixes.channelEvent, now)],
  ["team_id", "text", ({ team_id }) => team_id],
  ["source_id", "text", ({ source_id }) => source_id],
  ["kind", "text", ({ kind }) => kind],
  ["severity", "text", ({ severity }) => severity],
  ["message", "text", ({ message }) => message.slice(0, maxMessage)],
  ["error_code", "text", ({ error_code }) => error_code],
  ["subscription_id", "text", ({ subscription_id }) => subscription_id],
  ["told", "text", ({ details }) => JSON.stringify(details), []],
  { details: "told::json" },
  ["created_at", "timestamptz", ({ now }) => now],
  ["expires_at", "timestamptz", ({ now }) => now + keptMs]
])

/** Stores a channel event. To be called in a transaction. */
export const channelEvent = Effect.fnUntraced(function* (
  event: ChannelEvent,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`${sql.literal(channelEvents.insertInto("channel_events", ""))} ${channelEvents.unnest(sql, [{ ...event, now }])}`
})
