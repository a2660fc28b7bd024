import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { CarriedHandover } from "./Handover.ts"

/**
 * Takes what another process hands over to all destinations of this runner at once. There is one on each shard, so that a message
 * to any of them reaches the runner that holds it; it keeps nothing. `Take` is a hint: what is lost is found by the sweep.
 */
export const HandoverEntity = Entity.make("Handover", [
  Rpc.make("Take", { payload: { handover: CarriedHandover } }).annotate(ClusterSchema.InterruptOnTermination, true)
])
