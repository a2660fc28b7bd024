import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { RetriedStep } from "@tidegate/model/WorkflowRun"
import { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { workflow } from "@tidegate/resources/Workflow"
import { AggregateMessage, WorkflowAggregate } from "@tidegate/resources/WorkflowAggregate"
import { workflowTrialMessage } from "@tidegate/resources/WorkflowDryRun"
import { asked, carried, protocolOf } from "../Protocol.ts"

/**
 * A graph with faults is WORKFLOW_GRAPH_INVALID, with all of them in the data. `RetryStep`: a failed step of a run that has ended begins anew, with all
 * that follows from it; `retry_id` is made once by whoever asks, and the same one again changes nothing. `Save` writes the
 * workflow and a source of its own in one transaction. `Test` runs the stored workflow, or the
 * graph in the input (then the entity id is any that is not in use), and stores nothing; `run_id` is made by whoever asks. `Wake`: it has runs that
 * are due. A hint that may be lost: the sweep says it again.
 */
export const WorkflowEntity = protocolOf(workflow, [
  Rpc.make("RetryStep", {
    payload: { team_id: Schema.String, run_id: Schema.String, step_id: Schema.String, retry_id: Schema.String },
    success: RetriedStep,
    error: GatewayError
  }),
  Rpc.make("Save", {
    payload: { ...asked, input: carried(AggregateMessage) },
    success: carried(WorkflowAggregate),
    error: GatewayError
  }),
  Rpc.make("Test", {
    payload: {
      team_id: Schema.String,
      run_id: Schema.String,
      stored: Schema.Boolean,
      input: carried(workflowTrialMessage)
    },
    success: carried(WorkflowTest),
    error: GatewayError
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
