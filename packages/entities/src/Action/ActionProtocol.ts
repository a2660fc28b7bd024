import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { action } from "@tidegate/resources/Action"
import { protocolOf } from "../Protocol.ts"

/**
 * What a saved action is sent: the commands of any resource. `Turn`: a step waits for its turn to call it, in the line of its workflow and
 * since a time (Unix ms); false: it has had none yet, and asks again. An answer that is lost is a turn too many that is counted.
 */
export const ActionEntity = protocolOf(action, [
  Rpc.make("Turn", {
    payload: { team_id: Schema.String, line: Schema.String, since: Schema.Finite },
    success: Schema.Boolean
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])
