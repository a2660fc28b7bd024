import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { EventKind, Severity } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import { newId, prefixes } from "@tidegate/model/Ids"

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

/** Stores a channel event. To be called in a transaction. */
export const channelEvent = Effect.fnUntraced(function* (
  event: ChannelEvent,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into channel_events (id, team_id, source_id, kind, severity, message, error_code, subscription_id, details,
      created_at, expires_at)
    values (${newId(prefixes.channelEvent, now)}, ${event.team_id}, ${event.source_id}, ${event.kind}, ${event.severity},
      ${event.message.slice(0, maxMessage)}, ${event.error_code}, ${event.subscription_id},
      ${JSON.stringify(event.details)}::json, ${new Date(now)}, ${new Date(now + keptMs)})`
})

/** Messages may quote a provider. */
const maxMessage = 1_000
