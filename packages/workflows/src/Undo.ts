import type { StepError } from "./StepKind.ts"
import type { Workflow } from "./Workflow.ts"

/** What the undo of a failed run still has to do, read from the state of its steps. */

/** What is read of the state of a step. */
interface Seen {
  readonly status: string
  readonly ports: ReadonlyArray<string>
  readonly handled: boolean
  readonly error: StepError | null
  readonly startedAt: number | null
  readonly finishedAt: number | null
}

type Steps = ReadonlyArray<Seen>

/**
 * Whether the step has done what its compensation undoes. A changed value that was found changed by others already, and a called
 * run that has not ended in time, leave their steps by another port.
 */
const isDone = ({ ports, status }: Seen): boolean => status === "succeeded" && ports.includes("out")

/** Positions of the compensations that have something to undo. */
const needed = ({ plan, undoing }: Workflow, steps: Steps): ReadonlyArray<number> =>
  undoing.filter((index) => isDone(steps[plan[index]!.undoes!]!))

/** Whether this compensation has something to undo. */
export const isNeeded = (workflow: Workflow, steps: Steps, index: number): boolean =>
  needed(workflow, steps).includes(index)

/**
 * The compensation that begins next; null: none is left. The step that ended last is undone first. What follows from a step is
 * undone before it, also when the clocks of two processes differ.
 */
export const nextUndo = (workflow: Workflow, steps: Steps): number | null => {
  const { plan } = workflow
  const open = needed(workflow, steps).filter((index) => steps[index]!.status === "pending")
  const undone = (index: number): number => plan[index]!.undoes!
  const isFollowed = (index: number): boolean => open.some((other) => plan[undone(other)]!.ancestors.has(undone(index)))
  const endOf = (index: number): number => steps[undone(index)]!.finishedAt ?? 0
  const [next = null] = open
    .filter((index) => !isFollowed(index))
    .toSorted((left, right) => endOf(right) - endOf(left) || undone(right) - undone(left))
  return next
}

type Ended = Pick<Seen, "handled" | "startedAt" | "status">

/** Whether a run that failed has begun to be undone. Its steps cannot be retried any more: what they need is gone. */
export const hasBegunUndo = (compensations: ReadonlyArray<Ended>, own: ReadonlyArray<Ended>): boolean =>
  compensations.some(({ startedAt }) => startedAt !== null) &&
  own.some(({ handled, status }) => status === "failed" && !handled)

/** The same of a run's state. */
export const isUndone = ({ own, undoing }: Workflow, steps: Steps): boolean =>
  undoing.length > 0 &&
  hasBegunUndo(
    undoing.map((index) => steps[index]!),
    own.map(({ index }) => steps[index]!)
  )

/** Whether a compensation of an ended run that was undone may be retried: it failed, or never began because the run was stopped. */
export const isLeftToUndo = ({
  skipReason,
  status
}: {
  readonly status: string
  readonly skipReason: string | null
}): boolean => status === "failed" || skipReason === "run_stopped"

/** The code of a run that has failed, and whose undo is not complete. */
export const undoIncomplete = "UNDO_INCOMPLETE"

/** Why the undo of an ended run is not complete, and the compensation with the first fault; null: it is, or there was none. */
export const undoFault = (
  workflow: Workflow,
  { outcome, steps }: { readonly outcome: string | null; readonly steps: Steps },
  cause: Pick<StepError, "code" | "message"> | null
): { readonly error: StepError; readonly step: number } | null => {
  const { plan, undoing } = workflow
  if (outcome !== "failed" && !isUndone(workflow, steps)) return null
  const all = undoing.length === 0 ? undoing : needed(workflow, steps)
  const left = all.filter((index) => steps[index]!.status !== "succeeded")
  const first = left.find((index) => steps[index]!.status === "failed") ?? left[0]
  if (first === undefined) return null
  const { step, undoes } = plan[first]!
  const why = steps[first]!.error?.message ?? "the run was stopped"
  const before = cause === null ? "" : `; the run had failed with ${cause.code}: ${cause.message}`
  const message = `${left.length} of ${all.length} steps are not undone: ${step.id} has not undone ${plan[undoes!]!.step.id} (${why})${before}`
  return { error: { code: undoIncomplete, message }, step: first }
}
