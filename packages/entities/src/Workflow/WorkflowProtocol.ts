import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { workflow } from "@tidegate/resources/Workflow"
import { workflowTrialMessage } from "@tidegate/resources/WorkflowTrial"
import { protocolOf } from "../Protocol.ts"

/**
 * A graph with faults is WORKFLOW_GRAPH_INVALID, with all of them in the data. `Wake`: it has runs that are due. A hint that may be lost: the
 * sweep says it again. `Test` runs the stored workflow, or the graph in the input (then the entity id is any that is not in use), and stores
 * nothing; `run_id` is made by whoever asks.
 */
export const WorkflowEntity = protocolOf(workflow, [
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Test", {
    payload: {
      team_id: Schema.String,
      run_id: Schema.String,
      stored: Schema.Boolean,
      input: Schema.fromJsonString(Schema.toCodecJson(workflowTrialMessage))
    },
    success: Schema.fromJsonString(Schema.toCodecJson(WorkflowTest)),
    error: GatewayError
  }).annotate(ClusterSchema.InterruptOnTermination, true)
])
