import { Schema } from "effect"
import { Warning } from "./Warning.ts"
import { RunTrigger, StepExecution, VersionEvidence, WorkflowRunDetail } from "./WorkflowRun.ts"

/** A dry run of a workflow: like a run's detail, but nothing is stored. */
export const WorkflowTest = Schema.Struct({
  ...WorkflowRunDetail.fields,
  test: Schema.Literal(true),
  mode: Schema.Literals(["dry_run", "live"]),
  workflow_id: Schema.NullOr(Schema.String).annotate({ description: "Null: the graph was in the body" }),
  request_id: Schema.NullOr(Schema.String).annotate({ description: "Null: the request was in the body" }),
  workflow_version: Schema.Int.annotate({
    description: "The version of the graph. 0: the graph was in the body"
  }),
  version: VersionEvidence,
  trigger: Schema.Struct({ ...RunTrigger.fields, request_id: Schema.NullOr(Schema.String) }),
  warnings: Schema.optionalKey(Schema.Array(Warning)).annotate({
    description: "Warnings about the graph: names that a step's output does not have. Absent if there are none"
  }),
  steps: Schema.Array(
    Schema.Struct({
      ...StepExecution.fields,
      simulated: Schema.Boolean.annotate({ description: "Whether a mock or a sample replaced the step's output" })
    })
  )
}).annotate({ identifier: "WorkflowTest" })
export interface WorkflowTest extends Schema.Schema.Type<typeof WorkflowTest> {}
