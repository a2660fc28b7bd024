import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { SourceHealth } from "@tidegate/model/SourceHealth"
import { source } from "@tidegate/resources/Source"
import { protocolOf } from "../Protocol.ts"

/** What a door may accept; durations, because processes have no clock in common. */
const Lease = Schema.Struct({
  /** The version of the source that it goes by: a door that has an older one reads it again. */
  version: Schema.Number,
  budget: Schema.Number,
  reach: Schema.Number,
  share: Schema.Number,
  remaining_ms: Schema.Number,
  lease_ms: Schema.Number
})

/**
 * `RememberSecret`: the sender has announced a secret: it becomes `webhook_secret_key`, unless the source has another one already.
 * `Lease`: a door reports what it has accepted, and is told what it may; null: there is no limit. `Take`: a workflow publishes one
 * request: 0, or the milliseconds until there may be room for it. `Health`: how the source is doing.
 */
export const SourceEntity = protocolOf(source, [
  Rpc.make("RememberSecret", {
    payload: { team_id: Schema.String, secret: Schema.RedactedFromValue(Schema.String) },
    success: source.record,
    error: GatewayError
  }),
  Rpc.make("Lease", {
    payload: {
      team_id: Schema.String,
      version: Schema.Number,
      door: Schema.String,
      used: Schema.Number,
      told: Schema.Number,
      reach: Schema.NullOr(Schema.Number),
      wanted: Schema.Number
    },
    success: Schema.NullOr(Lease),
    error: GatewayError
  }),
  Rpc.make("Take", { payload: { team_id: Schema.String }, success: Schema.Number, error: GatewayError }),
  Rpc.make("Health", { payload: { team_id: Schema.String }, success: SourceHealth, error: GatewayError })
])
