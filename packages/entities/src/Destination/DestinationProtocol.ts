import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { ConsentStarted } from "@tidegate/model/Consent"
import { GatewayError } from "@tidegate/model/GatewayError"
import { destination } from "@tidegate/resources/Destination"
import { protocolOf } from "../Protocol.ts"
import { batchOf } from "../dispatch/Batch.ts"
import type { DeliveryItem } from "./queue/DeliveryItem.ts"
import { pullMessages } from "./pull/PullProtocol.ts"
import { stepMessages } from "./steps/StepProtocol.ts"
import { testMessages } from "./testing/TestProtocol.ts"
import { tunnelMessages } from "./tunnel/TunnelProtocol.ts"

/** The result of a manual retry: a new event, with the old one as its parent. */
export const EventRetry = Schema.Struct({
  event_id: Schema.String,
  replay_event_id: Schema.String,
  retried_at: Schema.String
})

/**
 * The commands of one destination, and the messages of its delivery queue.
 * `RetryEvent`: retries `event_id` as the event `id`, which joins this destination's queue; a repeated message changes nothing
 * more.
 * `Deliver`: events that were just committed (a wake-up notification: the poller finds what is lost). `Wake`: something is due.
 * `StartConsent` and `EndConsent`: a person is sent to consent to the destination's tokens, and has come back; a state is valid
 * for one code.
 * `Reread`: some waiting events are no longer to be delivered; events in memory that have not begun are read again.
 * `Reload`: the destination's row or one of its connections has changed; answered once every later delivery uses the new state.
 */
export const DestinationEntity = protocolOf(destination, [
  Rpc.make("RetryEvent", {
    payload: { team_id: Schema.String, event_id: Schema.String, id: Schema.String },
    success: EventRetry,
    error: GatewayError
  }),
  Rpc.make("StartConsent", {
    payload: { team_id: Schema.String },
    success: ConsentStarted,
    error: GatewayError
  }),
  Rpc.make("EndConsent", {
    payload: {
      team_id: Schema.String,
      state: Schema.String,
      code: Schema.NullOr(Schema.String),
      error: Schema.NullOr(Schema.String)
    },
    success: Schema.Struct({ renewable: Schema.Boolean }),
    error: GatewayError
  }),
  Rpc.make("Deliver", { payload: { batch: batchOf<DeliveryItem>() } }).annotate(
    ClusterSchema.InterruptOnTermination,
    true
  ),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Reload"),
  Rpc.make("Reread"),
  ...stepMessages,
  ...tunnelMessages,
  ...pullMessages,
  ...testMessages
])
