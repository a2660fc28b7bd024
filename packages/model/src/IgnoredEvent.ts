import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/**
 * Why a connection made no event from a request that was routed to it. HANDSHAKE: the request was the provider's handshake, which
 * the gateway has answered. PROCESS_ENDED: the process died several times while it decided about the request.
 */
export const IgnoredCause = Schema.Literals([
  "FILTERED",
  "TRANSFORMATION_FAILED",
  "DEDUPLICATED",
  "HANDSHAKE",
  "DISABLED",
  "CLI_DISCONNECTED",
  "PROCESS_ENDED"
])

/** A request that a connection's rules did not make an event; `meta` has the details. */
export const IgnoredEvent = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  webhook_id: Schema.String,
  connection_id: Schema.String,
  source_id: Schema.String,
  request_id: Schema.String,
  cause: IgnoredCause,
  meta: Schema.Json,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "IgnoredEvent" })

export interface IgnoredEvent extends Schema.Schema.Type<typeof IgnoredEvent> {}
