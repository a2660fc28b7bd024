import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { action } from "@tidegate/resources/Action"
import { protocolOf } from "../Protocol.ts"

/**
 * The messages of a saved action: the commands of any resource, and `Turn`. With `Turn` a step waits for a rate permit for one
 * call. `line` is the step's workflow, `since` the time at which the step began to wait (Unix ms). False: no permit was given
 * yet, and the step asks again. If the answer is lost, an unused permit counts against the limit.
 */
export const ActionEntity = protocolOf(action, [
  Rpc.make("Turn", {
    payload: { team_id: Schema.String, line: Schema.String, since: Schema.Finite },
    success: Schema.Boolean
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])
