import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { WorkflowTriggers } from "./WorkflowTriggers.ts"

/** `active`: each request of its source begins a run. `paused`: too, but the runs wait. The others begin none. */
export const WorkflowStatus = Schema.Literals(["draft", "active", "paused", "disabled"])
export type WorkflowStatus = typeof WorkflowStatus.Type

const textOrNull = Schema.NullOr(Schema.String)

/** The source that begins a workflow's runs, and what is known about its requests. */
const Trigger = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  type: Schema.String,
  status: Schema.Literals(["enabled", "disabled"]),
  provider_key: textOrNull,
  definition_key: textOrNull,
  definition_name: textOrNull,
  output_schema: Schema.Json,
  schema_provenance: Schema.Literals(["provider", "sample", "none"]),
  primary_output: Schema.String,
  export_path: textOrNull,
  sample: Schema.Json
}).annotate({ identifier: "WorkflowTrigger" })

/** Why a stored workflow cannot run in its current state. */
const RuntimeIssue = Schema.Struct({
  code: Schema.Literals(["workflow_resource_missing", "workflow_resource_disabled", "workflow_action_disabled"]),
  message: Schema.String,
  step_id: textOrNull,
  step_number: Schema.NullOr(Schema.Int),
  step_name: textOrNull,
  field: textOrNull
}).annotate({ identifier: "WorkflowRuntimeIssue" })
export type RuntimeIssue = typeof RuntimeIssue.Type

const Capabilities = Schema.Struct({
  branching: Schema.Boolean,
  fan_out: Schema.Boolean,
  join: Schema.Boolean,
  sequential_action_loop: Schema.Boolean,
  runtime_executable: Schema.Boolean,
  runtime_issue: Schema.NullOr(RuntimeIssue)
}).annotate({ identifier: "WorkflowCapabilities" })

/** A workflow as the API shows it; a list leaves out steps and edges. */
export const Workflow = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  source_id: textOrNull.annotate({ description: "Null: it has none, or the source was deleted" }),
  name: Schema.String,
  description: textOrNull,
  status: WorkflowStatus,
  version: Schema.Int.annotate({ description: "Increases by one with every change" }),
  run_label: textOrNull.annotate({ description: "The template of the label of its runs. Null: they have none" }),
  source: Schema.NullOr(Trigger),
  capabilities: Capabilities,
  steps: Schema.optionalKey(Schema.Array(Schema.Json)),
  edges: Schema.optionalKey(Schema.Array(Schema.Json)),
  triggers: Schema.optionalKey(Schema.NullOr(WorkflowTriggers)),
  steps_count: Schema.Int,
  edges_count: Schema.Int,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Workflow" })

export interface Workflow extends Schema.Schema.Type<typeof Workflow> {}
