import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { RunTriggerType } from "./WorkflowTriggers.ts"

/** Runs of workflows, as the API shows them. */

export const RunStatus = Schema.Literals(["queued", "running", "succeeded", "failed"])
export type RunStatus = typeof RunStatus.Type

const textOrNull = Schema.NullOr(Schema.String)
const timeOrNull = Schema.NullOr(Timestamp)
const count = Schema.Int
const countOrNull = Schema.NullOr(Schema.Int)
const durationOrNull = countOrNull.annotate({ description: "Milliseconds from start to end. Null: it has not ended" })
const sizeOrNull = countOrNull.annotate({ description: "Bytes. Null: unknown" })

export const RunOutcome = Schema.Literals([
  "completed",
  "filtered",
  "completed_with_errors",
  "failed",
  "cancelled",
  "duplicate",
  "superseded",
  "batched"
])

/** The on-failure run of a run that has failed. */
export const FailureRun = Schema.Struct({
  attempt: count.annotate({ description: "The `attempt_count` with which the run failed" }),
  workflow_id: Schema.String,
  run_id: textOrNull.annotate({ description: "Null: no run began" }),
  error_code: textOrNull.annotate({ description: "Why no run began" }),
  error_message: textOrNull
}).annotate({ identifier: "FailureRun" })
export type FailureRun = typeof FailureRun.Type

const row = {
  id: Schema.String,
  workflow_id: Schema.String,
  request_id: Schema.String.annotate({
    description: "The request that began the run. For a run with an input of its own: the run's id"
  }),
  run_type: Schema.Literal("workflow"),
  label: textOrNull.annotate({ description: "By the workflow's run_label. Null: it has none, or has not begun" }),
  trigger_type: RunTriggerType.annotate({
    description:
      "What began the run: a request, a key by the API (`api`), a person (`manual`), a schedule, another workflow, or a failed run"
  }),
  status: RunStatus,
  outcome: Schema.NullOr(RunOutcome),
  workflow_version: Schema.Int,
  attempt_count: count.annotate({ description: "One, plus the number of step retries" }),
  error_code: textOrNull,
  error_message: textOrNull,
  error_step_id: textOrNull,
  hold_reason: Schema.NullOr(Schema.Literal("paused")).annotate({ description: "Why the run does not continue" }),
  steps_count: count,
  succeeded_steps: count,
  failed_steps: count,
  skipped_steps: count,
  pending_steps: count,
  running_steps: count,
  started_at: timeOrNull,
  finished_at: timeOrNull,
  duration_ms: durationOrNull,
  created_at: Timestamp,
  updated_at: Timestamp,
  rerun_of: textOrNull.annotate({ description: "The run that this one repeats" }),
  on_failure: Schema.NullOr(FailureRun).annotate({
    description:
      "What became of the on-failure workflow when this run failed. Null: none was named, or it is not decided yet"
  })
}

export const WorkflowRun = Schema.Struct(row).annotate({ identifier: "WorkflowRun" })
export type WorkflowRun = typeof WorkflowRun.Type

/** The beginning of the next page is `next_cursor`; null when there is none. */
/** What people see of a payload: secrets are masked, what is large is shown in part or not at all. */
export const PayloadPreview = Schema.Struct({
  available: Schema.Boolean,
  redacted: Schema.Boolean,
  truncated: Schema.Boolean,
  content_type: textOrNull,
  size_bytes: sizeOrNull,
  sha256: textOrNull,
  preview: Schema.Json,
  redacted_paths: Schema.Array(Schema.String),
  reason: Schema.NullOr(Schema.Literals(["expired", "too_large", "unavailable", "binary", "not_captured"])).annotate({
    description: "Why there is no preview"
  })
}).annotate({ identifier: "PayloadPreview" })
export type PayloadPreview = typeof PayloadPreview.Type

const StepAnswer = Schema.Struct({
  status: Schema.Int,
  headers: Schema.Record(Schema.String, Schema.String),
  body: Schema.Json.annotate({ description: "Parsed if it is JSON; null if it is empty, or cannot be shown" }),
  truncated: Schema.Boolean.annotate({ description: "Whether only a part of the body is shown" })
}).annotate({ identifier: "StepAnswer" })

/** With `include_previews`. Null: there was no answer, it is not kept any more, or it was not asked for. */
const answerOrNull = Schema.NullOr(StepAnswer).annotate({
  description:
    "The answer of the target that refused the call, without secrets. Null: there was none, it is not stored, or `include_previews` is not true"
})

const StepAttempt = Schema.Struct({
  number: Schema.Int,
  status: Schema.Literals(["running", "succeeded", "failed"]),
  response_status: countOrNull,
  error_code: textOrNull,
  error_message: textOrNull,
  response: answerOrNull,
  started_at: timeOrNull,
  finished_at: timeOrNull,
  duration_ms: durationOrNull
}).annotate({ identifier: "StepAttempt" })
export type StepAttempt = typeof StepAttempt.Type

/** An element of the list that a step runs for. */
const ElementExecution = Schema.Struct({
  index: count,
  status: Schema.Literals(["pending", "running", "succeeded", "failed", "skipped"]).annotate({
    description: "`skipped`: the step ended before the element began"
  }),
  attempt_count: count,
  response_status: countOrNull.annotate({ description: "Of a failure" }),
  error_code: textOrNull,
  error_message: textOrNull.annotate({ description: "Up to 300 characters" })
}).annotate({ identifier: "ElementExecution" })
export type ElementExecution = typeof ElementExecution.Type

const compact = {
  id: Schema.String,
  step_id: Schema.String,
  name: Schema.String,
  kind: Schema.String,
  status: Schema.Literals(["pending", "running", "succeeded", "failed", "skipped"]),
  execution_index: Schema.Int,
  input: Schema.NullOr(
    Schema.Struct({
      source_type: Schema.Literals(["trigger", "step"]),
      source_step_id: textOrNull,
      source_port: Schema.String
    })
  ).annotate({ description: "The edge by which the step was first reached" }),
  compensates: textOrNull.annotate({ description: "The step that this one undoes when the run has failed" }),
  output_port: textOrNull,
  response_status: countOrNull,
  error_code: textOrNull,
  error_message: textOrNull,
  started_at: timeOrNull,
  finished_at: timeOrNull
}

/** A step of a run, as lists show it. */
export const StepSummary = Schema.Struct(compact).annotate({ identifier: "StepSummary" })
export type StepSummary = typeof StepSummary.Type

/** A step of a run. */
export const StepExecution = Schema.Struct({
  ...compact,
  output_ports: Schema.Array(Schema.String),
  skip_reason: Schema.NullOr(
    Schema.Literals(["filtered", "path_not_taken", "condition_false", "upstream_failed", "run_stopped", "not_needed"])
  ).annotate({
    description: "`not_needed`: a compensation of a run that has not failed, or of a step that has not succeeded"
  }),
  handled: Schema.Boolean.annotate({ description: "Whether the run continued after the step's failure" }),
  attempt_count: count,
  max_attempts: count,
  attempts: Schema.Array(StepAttempt).annotate({
    description: "The latest 50 attempts. For a step that runs for a list, those of the last element"
  }),
  wait: Schema.NullOr(
    Schema.Struct({ kind: Schema.Literals(["delay", "retry", "hold", "signal"]), until: Timestamp }).annotate({
      description:
        "`hold`: the workflow is paused. `until` is the time at which the step would have started. `signal`: the step waits for a decision or a callback until then"
    })
  ),
  warnings: Schema.Array(
    Schema.Struct({
      code: Schema.String,
      field: textOrNull,
      line_item_index: Schema.optionalKey(countOrNull),
      message: Schema.optionalKey(Schema.String)
    })
  ),
  iterations: Schema.NullOr(
    Schema.Struct({
      count,
      completed: count,
      failed: count.annotate({
        description: "Failed elements. A retry of the step calls only these again, and those that never began"
      }),
      elements: Schema.NullOr(Schema.Array(ElementExecution)).annotate({
        description:
          "In the order of the list. Null: it is not known, or the lists before have the 5,000 elements that an answer shows"
      })
    })
  ),
  resource: Schema.NullOr(Schema.Struct({ type: Schema.String, id: Schema.String })),
  queued_at: timeOrNull,
  duration_ms: durationOrNull,
  error: Schema.NullOr(
    Schema.Struct({ code: Schema.String, message: Schema.String, status: countOrNull, response: answerOrNull })
  ).annotate({ description: "Why the step failed. For a step that runs for a list: the last failure" }),
  input_preview: Schema.NullOr(PayloadPreview),
  output_preview: Schema.NullOr(PayloadPreview)
}).annotate({ identifier: "StepExecution" })
export type StepExecution = typeof StepExecution.Type

/** A resource that a step named when the run began. */
const ResourceEvidence = Schema.Struct({
  step_id: Schema.String,
  type: Schema.String,
  id: Schema.String,
  name: textOrNull,
  content_hash: textOrNull,
  updated_at: timeOrNull,
  exists: Schema.Boolean.annotate({ description: "Whether the resource still exists" })
}).annotate({ identifier: "ResourceEvidence" })
export type ResourceEvidence = typeof ResourceEvidence.Type

/** The version that ran. */
export const VersionEvidence = Schema.Struct({
  number: Schema.Int,
  definition_hash: Schema.String,
  created_at: Timestamp,
  created_by_user_id: textOrNull.annotate({
    description:
      "The user who made the version. Null: an API key made it, it was made for a test, or it is older than this member"
  }),
  current_version: Schema.Int,
  is_current: Schema.Boolean,
  workflow_name: Schema.String,
  steps: Schema.Array(Schema.Json),
  edges: Schema.Array(Schema.Json),
  formatter_engine_version: textOrNull,
  resources: Schema.Array(ResourceEvidence)
}).annotate({ identifier: "VersionEvidence" })
export type VersionEvidence = typeof VersionEvidence.Type

const source = {
  id: Schema.String,
  name: textOrNull,
  provider_key: textOrNull,
  trigger_name: Schema.String
}

/** What began the run. Members that are no longer known are null. */
export const RunTrigger = Schema.Struct({
  type: RunTriggerType,
  request_id: Schema.String.annotate({ description: "Names a stored request if `type` is `request`" }),
  source: Schema.Struct({ ...source, definition_key: textOrNull }),
  delivery_mode: Schema.Literals(["webhook", "instant", "polling", "manual", "replay"]),
  method: textOrNull,
  path: textOrNull,
  content_type: textOrNull,
  size_bytes: sizeOrNull,
  received_at: Timestamp,
  is_retry: Schema.Boolean,
  preview: Schema.NullOr(PayloadPreview)
}).annotate({ identifier: "RunTrigger" })
export type RunTrigger = typeof RunTrigger.Type

const StepRetries = Schema.Struct({
  count,
  last_requested_at: timeOrNull,
  last_step_id: textOrNull,
  retryable_step_ids: Schema.Array(Schema.String)
}).annotate({ identifier: "StepRetries" })

/** A run with its version, its trigger and its steps: first those that ran, in their order, then the others. */
export const WorkflowRunDetail = Schema.Struct({
  ...row,
  version: VersionEvidence,
  trigger: RunTrigger,
  retry: StepRetries,
  steps: Schema.Array(StepExecution)
}).annotate({ identifier: "WorkflowRunDetail" })
export type WorkflowRunDetail = typeof WorkflowRunDetail.Type

/** A run in the list of the whole team. */
export const WorkflowActivity = Schema.Struct({
  id: row.id,
  request_id: row.request_id,
  workflow_id: row.workflow_id,
  workflow_name: textOrNull,
  workflow_version: row.workflow_version,
  label: row.label,
  source: Schema.Struct(source),
  status: row.status,
  outcome: row.outcome,
  attempt_count: row.attempt_count,
  steps_count: row.steps_count,
  succeeded_steps: row.succeeded_steps,
  failed_steps: row.failed_steps,
  skipped_steps: row.skipped_steps,
  error_code: row.error_code,
  error_message: row.error_message,
  error_step_id: row.error_step_id,
  steps: Schema.Array(StepSummary).annotate({
    description:
      "The steps. Of a run with more than 200 journal entries, only steps that changed recently or at the beginning"
  }),
  started_at: row.started_at,
  finished_at: row.finished_at,
  created_at: row.created_at,
  updated_at: row.updated_at
}).annotate({ identifier: "WorkflowActivity" })
export type WorkflowActivity = typeof WorkflowActivity.Type

/** A run whose failed step is to run again. */
export const RetriedStep = Schema.Struct({
  id: Schema.String,
  workflow_id: Schema.String,
  workflow_version: Schema.Int,
  status: Schema.Literal("queued"),
  retry_outbox_id: Schema.String.annotate({ description: "The id of this retry" }),
  retry_step: Schema.Struct({ step_id: Schema.String, name: Schema.String })
}).annotate({ identifier: "RetriedStep" })
export type RetriedStep = typeof RetriedStep.Type

/** A decision that a step of a run has waited for. */
export const StepDecision = Schema.Struct({
  run_id: Schema.String,
  workflow_id: Schema.String,
  step_id: Schema.String,
  decision: Schema.Literals(["approved", "rejected"]),
  comment: textOrNull,
  decided_by: Schema.Literals(["user", "api_key", "link"]),
  decided_by_user_id: textOrNull.annotate({ description: "Null: an API key decided, or a person who used a link" }),
  decided_by_name: textOrNull.annotate({
    description: "The name that a person who used a link gave; nobody has checked it"
  }),
  decided_at: Timestamp
}).annotate({ identifier: "StepDecision" })
export type StepDecision = typeof StepDecision.Type

/** The result of clearing a history. `has_more`: call again, because one call removes a limited number. */
export const ClearedRuns = Schema.Struct({
  workflow_id: Schema.String,
  deleted: count,
  retained_active: count.annotate({ description: "Unfinished runs, counted up to 10,000" }),
  has_more: Schema.Boolean
}).annotate({ identifier: "ClearedRuns" })
export type ClearedRuns = typeof ClearedRuns.Type

/** A run that was cancelled. */
export const CancelledRun = Schema.Struct({
  id: Schema.String,
  workflow_id: Schema.String,
  status: Schema.Literal("failed"),
  outcome: Schema.Literal("cancelled")
}).annotate({ identifier: "CancelledRun" })
export type CancelledRun = typeof CancelledRun.Type

/** A new run that repeats another one. */
export const StartedRerun = Schema.Struct({
  id: Schema.String,
  workflow_id: Schema.String,
  workflow_version: Schema.Int,
  status: Schema.Literal("queued"),
  rerun_of: Schema.String.annotate({ description: "The run that it repeats" })
}).annotate({ identifier: "StartedRerun" })
export type StartedRerun = typeof StartedRerun.Type
