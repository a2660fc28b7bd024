import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { CarriedHandover } from "./Handover.ts"

/**
 * Takes what another process hands over to all destinations of this runner at once. There is one on each shard, so that a message
 * to any of them reaches the runner that holds it; it keeps nothing. A lost `Take` does no harm: the poller finds the events.
 */
export const HandoverEntity = Entity.make("Handover", [
  Rpc.make("Take", { payload: { handover: CarriedHandover } }).annotate(ClusterSchema.InterruptOnTermination, true)
])
