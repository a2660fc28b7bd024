import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { SourceHealth } from "@tidegate/model/SourceHealth"
import { source } from "@tidegate/resources/Source"
import { asked, carried, protocolOf } from "../Protocol.ts"

/** What an ingress process may accept. Times are durations, because processes have no common clock. */
const Lease = Schema.Struct({
  /** The version of the source that the lease is based on: an ingress process with an older one reads the source again. */
  version: Schema.Number,
  budget: Schema.Number,
  reach: Schema.Number,
  share: Schema.Number,
  remaining_ms: Schema.Number,
  lease_ms: Schema.Number
})

/**
 * `RememberSecret`: the sender has announced a secret; it becomes `webhook_secret_key` unless the source has another one already.
 * `ChangeDelivery`: the delivery of a provider source. `Lease`: an ingress process reports what it has accepted and gets what it may accept; null: there is no limit. `Take`: a
 * workflow publishes one request; returns 0, or the milliseconds until it may be accepted. `Health`: the state of the source.
 */
export const SourceEntity = protocolOf(source, [
  Rpc.make("RememberSecret", {
    payload: { team_id: Schema.String, secret: Schema.RedactedFromValue(Schema.String) },
    success: source.record,
    error: GatewayError
  }),
  Rpc.make("ChangeDelivery", {
    payload: { ...asked, input: carried(Schema.JsonObject) },
    success: carried(source.record),
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
