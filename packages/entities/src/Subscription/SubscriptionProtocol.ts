import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * The messages of a subscription; the entity id is its source's. `Wake`: it is due, or has changed. This is a wake-up notification and may
 * be lost: the process that owns the shard looks for it.
 */
export const SubscriptionEntity = Entity.make("Subscription", [
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
