import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Destination } from "@tidegate/model/Destination"
import { GatewayError } from "@tidegate/model/GatewayError"
import { DeliveryBatch } from "./DeliveryBatch.ts"

const team = { team_id: Schema.String }

/** What a manual retry answers: a new event, with the old one as its parent. */
export const EventRetry = Schema.Struct({
  event_id: Schema.String,
  replay_event_id: Schema.String,
  retried_at: Schema.String
})

/**
 * Commands of one destination, and the messages of its delivery queue.
 * `RetryEvent`: retries `event_id` as the event `id`, which joins this destination's queue; repeated, it changes nothing more.
 * `Deliver`: events just committed (a hint: what is lost is found by the sweep). `Wake`: something is due.
 * `Reload`: its own row or one of its connections changed; answered once the new state governs every later delivery.
 */
export const DestinationEntity = Entity.make("Destination", [
  Rpc.make("Create", { payload: { ...team, input: Schema.Json }, success: Destination, error: GatewayError }),
  Rpc.make("Update", { payload: { ...team, input: Schema.Json }, success: Destination, error: GatewayError }),
  Rpc.make("Replace", { payload: { ...team, input: Schema.Json }, success: Destination, error: GatewayError }),
  Rpc.make("Upsert", { payload: { ...team, input: Schema.Json }, success: Destination, error: GatewayError }),
  Rpc.make("Disable", { payload: team, success: Destination, error: GatewayError }),
  Rpc.make("Enable", { payload: team, success: Destination, error: GatewayError }),
  Rpc.make("Delete", { payload: team, success: Schema.Struct({ id: Schema.String }), error: GatewayError }),
  Rpc.make("RetryEvent", {
    payload: { ...team, event_id: Schema.String, id: Schema.String },
    success: EventRetry,
    error: GatewayError
  }),
  Rpc.make("Deliver", { payload: { batch: DeliveryBatch } }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Reload")
])
