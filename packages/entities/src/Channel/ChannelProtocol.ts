import { Entity, ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * The messages of a channel; the entity id is its source's. `Wake`: something is due, or its rows have changed. This is a wake-up
 * notification and may be lost: the poller sends it again.
 */
export const ChannelEntity = Entity.make("Channel", [
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
