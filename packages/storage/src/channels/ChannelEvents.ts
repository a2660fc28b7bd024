import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"

const keptMs = 30 * 86_400_000

/** What happened to a channel, for its operators: no tokens, no secrets. */
export interface ChannelEvent {
  readonly team_id: string
  readonly source_id: string
  readonly kind: string
  readonly severity: "info" | "warning" | "error"
  readonly message: string
  readonly error_code?: string | null
  readonly subscription_id?: string | null
  readonly details?: Schema.JsonObject
}

/** Writes an event of a channel in the caller's transaction. */
export const channelEvent = Effect.fnUntraced(function* (
  event: ChannelEvent,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into channel_events (id, team_id, source_id, kind, severity, message, error_code, subscription_id, details, created_at, expires_at)
    values (${newId(prefixes.channelEvent, now)}, ${event.team_id}, ${event.source_id}, ${event.kind}, ${event.severity},
      ${event.message.slice(0, 500)}, ${event.error_code ?? null}, ${event.subscription_id ?? null},
      ${JSON.stringify(event.details ?? {})}::json, ${new Date(now)}, ${new Date(now + keptMs)})`
})
