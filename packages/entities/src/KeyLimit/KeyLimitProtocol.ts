import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * What is left of one key's calls, where processes have no Redis to count them in. `Take`: one call, if there is one left. It may be lost or
 * come twice, as any message: then a call too many is counted, never one too few.
 */
export const KeyLimitEntity = Entity.make("KeyLimit", [
  Rpc.make("Take", {
    payload: { calls: Schema.Int, window_ms: Schema.Int },
    success: Schema.Struct({
      allowed: Schema.Boolean,
      limit: Schema.Int,
      windowMs: Schema.Int,
      remaining: Schema.Int,
      resetMs: Schema.Number,
      retryMs: Schema.Number
    })
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])
