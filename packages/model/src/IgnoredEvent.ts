import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/**
 * Why a connection made no event of a request it was routed to. HANDSHAKE: the request was the provider's greeting, which
 * the gateway has answered. PROCESS_ENDED: the process ended again and again while it decided about it.
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

/** A request that a connection's rules kept from becoming an event; `meta` tells what decided it. */
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
