import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"

/**
 * The remaining calls of one API key, for processes that have no Redis to count them. `Take` uses one call, if one is left. As
 * any message, it may be lost or arrive twice: then one call too many is counted, never one too few.
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
