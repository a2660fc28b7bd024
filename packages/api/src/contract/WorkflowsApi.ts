import { workflow } from "@tidegate/resources/Workflow"
import { groupOf } from "./Group.ts"
import * as Parameters from "./Parameters.ts"

/** Graphs of steps that the requests of a source run through. */
export class WorkflowsApi extends groupOf(workflow, { query: Parameters.workflows }) {}
