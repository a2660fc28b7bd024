import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { workflow } from "@tidegate/resources/Workflow"
import { protocolOf } from "../Protocol.ts"

/**
 * A graph with faults is WORKFLOW_GRAPH_INVALID, with all of them in the data. `Wake`: it has runs that are due. A hint that may be lost: the
 * sweep says it again.
 */
export const WorkflowEntity = protocolOf(workflow, [
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
