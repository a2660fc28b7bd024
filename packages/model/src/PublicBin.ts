import { Schema } from "effect"
import { CapturedRequest } from "./CapturedRequest.ts"
import { Timestamp } from "./Timestamp.ts"

/** How long a bin lives that nobody claims. */
export const binLife = { seconds: 3_600 } as const

/** What a bin takes until it is claimed. */
export const binLimits = {
  /** Requests that are stored, of all its life. */
  requests: 500,
  /** Requests that are stored in a minute of the clock. */
  perMinute: 60,
  /** Bytes of a body. */
  body: 1024 * 1024
} as const

const members = {
  id: Schema.String,
  endpoint: Schema.String.annotate({ description: "What senders send to" }),
  expires_at: Timestamp.annotate({ description: "When it ends, unless it is claimed" }),
  ttl_seconds: Schema.Int.annotate({ description: "Seconds that a bin lives" })
}

/** A bin that has just been made. */
export const NewPublicBin = Schema.Struct({
  ...members,
  token: Schema.String.annotate({ description: "Shown this once; sent as `x-bin-token: <token>`" })
}).annotate({ identifier: "NewPublicBin" })

export interface NewPublicBin extends Schema.Schema.Type<typeof NewPublicBin> {}

/** A bin with what it has received. */
export const PublicBin = Schema.Struct({
  ...members,
  requests: Schema.Array(CapturedRequest),
  next_cursor: Schema.NullOr(Schema.String).annotate({ description: "Of the older ones; null: there are none" })
}).annotate({ identifier: "PublicBin" })

export interface PublicBin extends Schema.Schema.Type<typeof PublicBin> {}
