import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { Workflow } from "./Workflow.ts"
import { WorkflowTriggers } from "./WorkflowTriggers.ts"

const textOrNull = Schema.NullOr(Schema.String)

/** A template for a new workflow, as the API shows it. */
export const WorkflowTemplate = Schema.Struct({
  key: Schema.String,
  origin: Schema.Literals(["gateway", "team"]).annotate({
    description: "`gateway`: it is part of the gateway; `team`: the team has saved it"
  }),
  version: Schema.Int,
  name: Schema.String,
  description: Schema.String,
  trigger: Schema.Struct({ provider_key: textOrNull, definition_key: textOrNull, name: Schema.String }),
  steps: Schema.Array(
    Schema.Struct({ name: Schema.String, kind: Schema.String, provider_key: textOrNull, action_key: textOrNull })
  ),
  required_connections: Schema.Array(
    Schema.Struct({
      key: Schema.String.annotate({ description: "The name in `bindings`" }),
      type: Schema.Literals(["destination", "source", "url"]),
      description: Schema.String
    })
  ).annotate({ description: "The required bindings" }),
  sample: Schema.Json.annotate({ description: "An example of a request's body; null if there is none" }),
  updated_at: Timestamp
}).annotate({ identifier: "WorkflowTemplate" })
export interface WorkflowTemplate extends Schema.Schema.Type<typeof WorkflowTemplate> {}

/** The same with the workflow that it creates. */
export const WorkflowTemplateDetail = Schema.Struct({
  ...WorkflowTemplate.fields,
  definition: Schema.Struct({
    steps: Schema.Array(Schema.Json),
    edges: Schema.Array(Schema.Json),
    run_label: textOrNull,
    triggers: Schema.NullOr(WorkflowTriggers)
  }).annotate({
    description: "The workflow that is created. The binding with that key replaces `<key>`"
  })
}).annotate({ identifier: "WorkflowTemplateDetail" })
export interface WorkflowTemplateDetail extends Schema.Schema.Type<typeof WorkflowTemplateDetail> {}

/** A workflow that has just been made of a template. */
export const InstantiatedWorkflow = Schema.Struct({
  ...Workflow.fields,
  template: Schema.Struct({ key: Schema.String, version: Schema.Int })
}).annotate({ identifier: "InstantiatedWorkflow" })
