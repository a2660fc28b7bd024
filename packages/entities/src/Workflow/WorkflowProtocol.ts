import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { WorkflowDraftCheck } from "@tidegate/model/WorkflowDraft"
import { CancelledRun, RetriedStep, StartedRerun, StepDecision } from "@tidegate/model/WorkflowRun"
import { WorkflowTest } from "@tidegate/model/WorkflowTest"
import { rerunMessage } from "@tidegate/resources/RerunInput"
import { stepChangeMessage } from "@tidegate/resources/StepChange"
import { workflow } from "@tidegate/resources/Workflow"
import { AggregateMessage, WorkflowAggregate } from "@tidegate/resources/WorkflowAggregate"
import { workflowDryRunMessage } from "@tidegate/resources/WorkflowDryRun"
import { asked, carried, protocolOf } from "../Protocol.ts"

const SenderAnswer = Schema.Struct({
  status: Schema.Int,
  contentType: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String),
  body: Schema.String
})

/**
 * The messages of a workflow.
 *
 * - A graph with faults fails with WORKFLOW_GRAPH_INVALID; `data` has all faults.
 * - `RetryStep` begins a failed step of an ended run again, with all steps that follow from it. The caller makes `retry_id` once;
 *   a repeated message with the same one changes nothing.
 * - `CancelRun` ends an unfinished run, and aborts its calls. A repeated message changes nothing.
 * - `Rerun` begins a run again as a new one. The caller makes `new_id` once.
 * - `Decide` ends the wait of a step of a run. `link`: by a person who used a link.
 * - `Receive` is a callback for a step of a run, which waits for it or will. `body` is in base64.
 * - `Save` writes the workflow and its own source in one transaction.
 * - `Test` runs the stored workflow, or the graph in the input (then the entity id is one that no workflow has). It stores
 *   nothing. The caller makes `run_id`.
 * - `Answer` waits for the output of a run's step, which answers a sender. Null: there is none, or not within the time limit.
 * - `ChangeStep` changes or removes one step. `PublishDraft` makes the draft the next version. Both return the workflow.
 * - `CheckDraft` runs stored requests by the live definition and by the draft. It stores nothing. The caller makes `run_id`.
 * - `Arrive`: something has arrived for which steps may wait. It may be lost, as `Wake`.
 * - `Wake`: the workflow has due runs. This is a wake-up notification and may be lost: the poller sends it again.
 */
export const WorkflowEntity = protocolOf(workflow, [
  Rpc.make("RetryStep", {
    payload: { team_id: Schema.String, run_id: Schema.String, step_id: Schema.String, retry_id: Schema.String },
    success: RetriedStep,
    error: GatewayError
  }),
  Rpc.make("Decide", {
    payload: {
      team_id: Schema.String,
      run_id: Schema.String,
      step_id: Schema.String,
      approves: Schema.Boolean,
      comment: Schema.NullOr(Schema.String),
      user_id: Schema.NullOr(Schema.String),
      link: Schema.optionalKey(Schema.Struct({ name: Schema.NullOr(Schema.String) }))
    },
    success: StepDecision,
    error: GatewayError
  }),
  Rpc.make("Receive", {
    payload: {
      team_id: Schema.String,
      run_id: Schema.String,
      step_id: Schema.String,
      method: Schema.String,
      headers: Schema.Record(Schema.String, Schema.String),
      query: Schema.String,
      body: Schema.String
    },
    success: Schema.Void,
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
      input: carried(workflowDryRunMessage)
    },
    success: carried(WorkflowTest),
    error: GatewayError
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Answer", {
    payload: { team_id: Schema.String, run_id: Schema.String, step_id: Schema.String, timeout_ms: Schema.Int },
    success: carried(Schema.NullOr(SenderAnswer))
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("CancelRun", {
    payload: { team_id: Schema.String, run_id: Schema.String },
    success: CancelledRun,
    error: GatewayError
  }),
  Rpc.make("Rerun", {
    payload: {
      team_id: Schema.String,
      run_id: Schema.String,
      new_id: Schema.String,
      input: carried(rerunMessage)
    },
    success: StartedRerun,
    error: GatewayError
  }),
  Rpc.make("ChangeStep", {
    payload: { ...asked, step_id: Schema.String, input: carried(stepChangeMessage) },
    success: carried(workflow.record),
    error: GatewayError
  }),
  Rpc.make("PublishDraft", {
    payload: { ...asked, version: Schema.NullOr(Schema.Int) },
    success: carried(workflow.record),
    error: GatewayError
  }),
  Rpc.make("CheckDraft", {
    payload: { team_id: Schema.String, run_id: Schema.String, limit: Schema.Int },
    success: carried(WorkflowDraftCheck),
    error: GatewayError
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Arrive").annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
