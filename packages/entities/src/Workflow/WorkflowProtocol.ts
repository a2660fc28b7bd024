import { workflow } from "@tidegate/resources/Workflow"
import { protocolOf } from "../Protocol.ts"

/** A graph with faults is WORKFLOW_GRAPH_INVALID, with all of them in the data. */
export const WorkflowEntity = protocolOf(workflow)
