import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

const about = {
  key: Schema.String,
  updated_at: Timestamp,
  expires_at: Schema.NullOr(Timestamp).annotate({ description: "Null: it stays until it is deleted" })
}

/** A value that steps of a workflow keep between its runs. */
export const WorkflowValue = Schema.Struct({ ...about, value: Schema.Json }).annotate({ identifier: "WorkflowValue" })
export type WorkflowValue = typeof WorkflowValue.Type

/** The keys of all values of a workflow: at most 1,000. */
export const WorkflowValueKeys = Schema.Struct({
  keys: Schema.Array(Schema.Struct(about)).annotate({ description: "In their order, at most 1,000" })
}).annotate({ identifier: "WorkflowValueKeys" })
export type WorkflowValueKeys = typeof WorkflowValueKeys.Type

export const DeletedWorkflowValue = Schema.Struct({ key: Schema.String, deleted: Schema.Literal(true) }).annotate({
  identifier: "DeletedWorkflowValue"
})
