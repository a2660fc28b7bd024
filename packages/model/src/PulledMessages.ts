import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** What a consumer fetches from a destination of type PULL, and how it settles it. */

const Receipt = Schema.String.annotate({
  description:
    "Names this attempt when the message is settled. It stays the same if the message is handed out again unsettled"
})

/** A message as a consumer gets it: the request of a delivery by HTTP. */
export const PulledMessage = Schema.Struct({
  receipt: Receipt,
  event_id: Schema.String,
  request_id: Schema.String,
  source_id: Schema.String,
  connection_id: Schema.String,
  attempt_number: Schema.Int,
  ordering_key: Schema.NullOr(Schema.String).annotate({
    description: "A shortened form of the ordering key. Messages of one key are handed out one after the other"
  }),
  method: Schema.String,
  path: Schema.String.annotate({ description: "The path with its query" }),
  headers: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)])).annotate({
    description: "The headers of a delivery by HTTP, with the signature if the destination signs"
  }),
  body: Schema.optionalKey(Schema.String),
  body_base64: Schema.optionalKey(Schema.String).annotate({
    description: "The body in base64, if it is not text or is large"
  })
}).annotate({ identifier: "PulledMessage" })
export type PulledMessage = typeof PulledMessage.Type

export const PulledMessages = Schema.Struct({
  messages: Schema.Array(PulledMessage),
  leased_until: Schema.NullOr(Timestamp).annotate({
    description: "Until when these messages may be settled. Null: there are none"
  })
}).annotate({ identifier: "PulledMessages", description: "Messages for a consumer, oldest first." })

export const SettledMessages = Schema.Struct({
  settled: Schema.Array(Receipt).annotate({ description: "Recorded as the call says, now or by an earlier call" }),
  expired: Schema.Array(Receipt).annotate({
    description: "Not leased any more, or never: the message may be handed out again"
  })
}).annotate({ identifier: "SettledMessages", description: "Which messages a call has settled." })
