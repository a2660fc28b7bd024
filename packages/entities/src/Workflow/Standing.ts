import { runEnds } from "@tidegate/model/RunEnds"
import type { RunningWorkflow } from "@tidegate/storage/workflows/Runs"
import type { Occurrence } from "@tidegate/workflows/RunState"
import type { StepError } from "@tidegate/workflows/StepKind"

/** What the workflow's status means for its runs. */
export type Standing = { readonly kind: "active" | "held" } | { readonly kind: "stopped"; readonly error: StepError }

export const standingOf = ({ deleted, status }: RunningWorkflow): Standing => {
  if (deleted) return { kind: "stopped", error: { code: runEnds.deleted, message: "the workflow was deleted" } }
  if (status === "active") return { kind: "active" }
  if (status === "paused") return { kind: "held" }
  return { kind: "stopped", error: { code: runEnds.disabled, message: `the workflow is ${status}` } }
}

/** What happens to a run when its workflow's status changes. */
export const occurrenceOf = (standing: Standing): Occurrence =>
  standing.kind === "stopped"
    ? { type: "stopped", error: standing.error }
    : { type: standing.kind === "held" ? "held" : "released" }
