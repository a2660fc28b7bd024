import { Schema } from "effect"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import type { FieldErrors } from "../Input.ts"
import { Id } from "../Members.ts"

/** The workflow of which a run begins when a run fails, as it is written. */

export const OnFailureWrite = Schema.NullOr(
  Schema.Struct({
    workflow_id: Schema.NullOr(Id).annotate({
      message: "must be an id or null",
      description: "Another workflow of the team. Null: none, even if the team has one"
    })
  }).annotate({ identifier: "WorkflowOnFailureWrite" })
).annotate({
  message: "must be an object with a workflow_id, or null",
  description: "A run of that workflow begins when a run of this one fails. Null: one of the team's, if it has one"
})

/** Why a workflow cannot become the one that runs on failure. `status`: its status; null: the team has no such workflow. */
export const onFailureFault = (status: WorkflowStatus | null): string | null => {
  if (status === null) return "names no workflow of the team"
  return status === "active" || status === "paused"
    ? null
    : `names a workflow that is ${status}: no run of it would begin`
}

interface Named {
  readonly workflow_id: string
  /** The id of the workflow that names it; null: it is new. */
  readonly by: string | null
  readonly status: WorkflowStatus | null
}

/**
 * Faults of a setting that is new or changed. One that stays is not looked at: a workflow can be changed after the one that it names was
 * disabled or deleted. Its failed runs say so.
 */
export const onFailureFaults = ({ by, status, workflow_id }: Named): FieldErrors => {
  const message = workflow_id === by ? "names the workflow itself" : onFailureFault(status)
  return message === null ? [] : [{ path: "triggers.on_failure.workflow_id", message }]
}
