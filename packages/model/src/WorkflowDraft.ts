import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { RunStatus } from "./WorkflowRun.ts"
import { DefinitionChanges } from "./WorkflowVersion.ts"
import { Warning } from "./Warning.ts"

const textOrNull = Schema.NullOr(Schema.String)

/** A definition beside the live one. No run uses it until it is published. */
export const WorkflowDraft = Schema.Struct({
  workflow_id: Schema.String,
  based_on_version: Schema.Int.annotate({ description: "The version of the workflow that the draft was made of" }),
  current_version: Schema.Int,
  steps: Schema.Array(Schema.Json),
  edges: Schema.Array(Schema.Json),
  run_label: textOrNull,
  changes: DefinitionChanges.annotate({ description: "What publishing it changes" }),
  updated_by_user_id: textOrNull,
  created_at: Timestamp,
  updated_at: Timestamp,
  warnings: Schema.optionalKey(Schema.Array(Warning)).annotate({
    description: "After a write: references to names that a step's output does not have. Absent if there are none"
  })
}).annotate({ identifier: "WorkflowDraft" })
export type WorkflowDraft = typeof WorkflowDraft.Type

const Outcome = Schema.Struct({
  status: RunStatus,
  outcome: textOrNull,
  error_code: textOrNull,
  error_step_id: textOrNull
}).annotate({ identifier: "WorkflowDraftOutcome" })

/** How stored requests would run with the live definition and with the draft. */
export const WorkflowDraftCheck = Schema.Struct({
  workflow_id: Schema.String,
  version: Schema.Int.annotate({ description: "The live version that the draft was compared with" }),
  checked: Schema.Int,
  same: Schema.Int,
  different: Schema.Int,
  skipped: Schema.Int.annotate({ description: "Requests whose payload is not stored any more" }),
  complete: Schema.Boolean.annotate({
    description: "False: the time or the bytes of a check were used up before all requests were tried"
  }),
  requests: Schema.Array(
    Schema.Struct({
      request_id: Schema.String,
      received_at: Timestamp,
      same: Schema.Boolean,
      live: Outcome,
      draft: Outcome,
      different_steps: Schema.Array(Schema.String).annotate({
        description: "Steps that end differently or that only one of both runs; at most 20"
      })
    })
  )
}).annotate({ identifier: "WorkflowDraftCheck" })
export type WorkflowDraftCheck = typeof WorkflowDraftCheck.Type
