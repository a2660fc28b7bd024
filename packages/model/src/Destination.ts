import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The methods a delivery can be sent with. */
export const DeliveryMethod = Schema.Literals(["POST", "PUT", "PATCH", "DELETE"])
export type DeliveryMethod = typeof DeliveryMethod.Type

/** The window that `rate_limit` counts in. */
export const RatePeriod = Schema.Literals(["second", "minute", "hour", "day"])
export type RatePeriod = typeof RatePeriod.Type

/** The URL of every MOCK_API destination. It names nobody: the gateway itself makes the answers. */
export const mockUrl = "https://mock.invalid/"

/**
 * A destination as the API shows it: secrets in `config.auth` are masked, a MOCK_API's `config.url` is `mockUrl`. `attempts_24h_bins`: six buckets of four hours,
 * the oldest first, the last one ending now; `attempts_24h_count` is their sum.
 */
export const Destination = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  type: Schema.String,
  config: Schema.Struct({
    url: Schema.optionalKey(Schema.String),
    path: Schema.optionalKey(Schema.String),
    http_method: Schema.NullOr(DeliveryMethod),
    path_forwarding_disabled: Schema.Boolean,
    /** Whether deliveries carry the credentials that senders presented; else the headers and parameters are left out. */
    forward_credentials: Schema.Boolean,
    rate_limit: Schema.NullOr(Schema.Int),
    rate_limit_period: RatePeriod,
    auth_type: Schema.NullOr(Schema.String),
    auth: Schema.JsonObject
  }),
  disabled_at: Schema.NullOr(Timestamp),
  attempts_24h_count: Schema.Int,
  attempts_24h_bins: Schema.Array(Schema.Int),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Destination" })

export interface Destination extends Schema.Schema.Type<typeof Destination> {}
