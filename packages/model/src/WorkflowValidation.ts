import { Schema } from "effect"
import { Warning } from "./Warning.ts"

/** A fault of a workflow's definition. `step_id` and `edge_id` are null when it belongs to the whole graph. */
const WorkflowIssue = Schema.Struct({
  code: Schema.String.annotate({ description: "A code for programs" }),
  step_id: Schema.NullOr(Schema.String),
  edge_id: Schema.NullOr(Schema.String),
  field: Schema.NullOr(Schema.String).annotate({ description: "A path in the step or the edge; null for the whole" }),
  message: Schema.String.annotate({ description: "For people" }),
  data: Schema.optionalKey(Schema.Struct({ step_ids: Schema.Array(Schema.String) })).annotate({
    description: "Of a cycle: its steps"
  })
}).annotate({ identifier: "WorkflowIssue" })

/** What a save of a definition would be refused for. */
export const WorkflowValidation = Schema.Struct({
  valid: Schema.Boolean.annotate({ description: "Whether there is no issue" }),
  issues: Schema.Array(WorkflowIssue).annotate({ description: "At most 200; a save would be refused for them" }),
  warnings: Schema.Array(Warning).annotate({ description: "At most 50; a save would be accepted in spite of them" })
}).annotate({ identifier: "WorkflowValidation" })
export type WorkflowValidation = typeof WorkflowValidation.Type
