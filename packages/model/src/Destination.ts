import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The methods a delivery can be sent with. */
export const DeliveryMethod = Schema.Literals(["POST", "PUT", "PATCH", "DELETE"])
export type DeliveryMethod = typeof DeliveryMethod.Type

/** The period that `rate_limit` counts in. */
export const RatePeriod = Schema.Literals(["second", "minute", "hour", "day"])
export type RatePeriod = typeof RatePeriod.Type

/** The length of a period (ms). */
export const ratePeriodMs: Readonly<Record<RatePeriod, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000
}

/**
 * A destination as the API shows it. `config` has the settings of its type and `auth_type`; secrets in `auth` are masked.
 * `attempts_24h_bins`: six buckets of four hours, oldest first, the last one ending now; `attempts_24h_count` is their sum.
 */
export const Destination = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  type: Schema.String,
  config: Schema.JsonObject,
  disabled_at: Schema.NullOr(Timestamp),
  held_until: Schema.NullOr(
    Timestamp.annotate({
      description: "Time until which nothing is sent, because the target accepts nothing. Null: it accepts deliveries"
    })
  ),
  attempts_24h_count: Schema.Int,
  attempts_24h_bins: Schema.Array(Schema.Int),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Destination" })

export interface Destination extends Schema.Schema.Type<typeof Destination> {}
