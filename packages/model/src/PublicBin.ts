import { Schema } from "effect"
import { CapturedRequest } from "./CapturedRequest.ts"
import { Timestamp } from "./Timestamp.ts"

/** The life of an unclaimed bin. */
export const binLife = { seconds: 3_600 } as const

/** The limits of a bin until it is claimed. */
export const binLimits = {
  /** Requests stored over its whole life. */
  requests: 500,
  /** Requests stored within a minute of the clock. */
  perMinute: 60,
  /** Bytes of a body. */
  body: 1024 * 1024
} as const

const members = {
  id: Schema.String,
  endpoint: Schema.String.annotate({ description: "The URL for senders" }),
  expires_at: Timestamp.annotate({ description: "When the bin expires, unless it is claimed" }),
  ttl_seconds: Schema.Int.annotate({ description: "Lifetime of a bin in seconds" })
}

/** A bin that was just created. */
export const NewPublicBin = Schema.Struct({
  ...members,
  token: Schema.String.annotate({ description: "Shown only once. Send it as `x-bin-token: <token>`" })
}).annotate({ identifier: "NewPublicBin" })

export interface NewPublicBin extends Schema.Schema.Type<typeof NewPublicBin> {}

/** A bin with its received requests. */
export const PublicBin = Schema.Struct({
  ...members,
  requests: Schema.Array(CapturedRequest),
  next_cursor: Schema.NullOr(Schema.String).annotate({
    description: "The cursor of older requests. Null: there are none"
  })
}).annotate({ identifier: "PublicBin" })

export interface PublicBin extends Schema.Schema.Type<typeof PublicBin> {}
