import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { WorkflowStatus } from "./Workflow.ts"
import { WorkflowTriggers } from "./WorkflowTriggers.ts"

const textOrNull = Schema.NullOr(Schema.String)

/** A version of a workflow in a list. */
export const WorkflowVersion = Schema.Struct({
  workflow_id: Schema.String,
  version: Schema.Int,
  is_current: Schema.Boolean,
  name: Schema.String,
  status: WorkflowStatus,
  description: textOrNull,
  source_id: textOrNull,
  run_label: textOrNull,
  triggers: Schema.NullOr(WorkflowTriggers),
  definition_hash: Schema.String.annotate({ description: "The same for versions with the same steps and edges" }),
  created_by_user_id: textOrNull.annotate({ description: "Null: it was made with an API key" }),
  created_at: Timestamp
}).annotate({ identifier: "WorkflowVersion" })
export type WorkflowVersion = typeof WorkflowVersion.Type

export const WorkflowVersionDetail = Schema.Struct({
  ...WorkflowVersion.fields,
  steps: Schema.Array(Schema.Json),
  edges: Schema.Array(Schema.Json)
}).annotate({ identifier: "WorkflowVersionDetail" })
export type WorkflowVersionDetail = typeof WorkflowVersionDetail.Type

const ChangedMember = Schema.Struct({
  name: Schema.String,
  before: Schema.Json,
  after: Schema.Json
}).annotate({ identifier: "WorkflowChangedMember", description: "A member with its value in both; null: it had none" })

const Changes = Schema.Struct({
  added: Schema.Array(Schema.Json),
  removed: Schema.Array(Schema.Json),
  changed: Schema.Array(Schema.Struct({ id: Schema.String, members: Schema.Array(ChangedMember) }))
}).annotate({ identifier: "WorkflowPartChanges", description: "What was added, removed and changed, by id" })

/** What differs between two definitions of a workflow. */
export const DefinitionChanges = Schema.Struct({
  steps: Changes,
  edges: Changes,
  settings: Schema.Array(ChangedMember)
})
export type DefinitionChanges = typeof DefinitionChanges.Type

export const WorkflowComparison = Schema.Struct({
  workflow_id: Schema.String,
  from_version: Schema.Int,
  to_version: Schema.Int,
  ...DefinitionChanges.fields
}).annotate({ identifier: "WorkflowComparison" })
export type WorkflowComparison = typeof WorkflowComparison.Type
