import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { CarriedHandover } from "./Handover.ts"

/**
 * Takes what another process hands over to all destinations of this runner in one message. There is one such entity per shard, so
 * that a message to any of them reaches the runner that holds the shard. It has no state. `Take` is a wake-up notification: the
 * poller finds what is lost.
 */
export const HandoverEntity = Entity.make("Handover", [
  Rpc.make("Take", { payload: { handover: CarriedHandover } }).annotate(ClusterSchema.InterruptOnTermination, true)
])
