import { type Progress, type StoredStep, progressIn, wholeStep } from "./Progress.ts"
import type { StepError } from "./StepKind.ts"

/** What is needed to give a run up, beside its journal entries. */
export interface GivingUp {
  readonly error: StepError
  readonly stepsCount: number
  /** Unix milliseconds. */
  readonly startedAt: number | null
  readonly now: number
  /** When no step was under way, the first step that had not begun fails: so the run can be retried from there. */
  readonly fromFirst?: boolean
}

/**
 * The steps of a run that cannot be continued: its version may be unreadable, or code that decides about it fails unexpectedly.
 * So nothing is evaluated and no plan is needed. By its journal entries, steps under way fail, and steps that had not begun are
 * skipped.
 */
export class GivenUp {
  readonly #steps = new Map<number, StoredStep>()

  /** To be called with the journal entries in their order. */
  take(steps: string): void {
    for (const [index, stored] of Object.entries(progressIn(steps).steps ?? {})) {
      this.#steps.set(Number(index), wholeStep(stored))
    }
  }

  /** The run's last journal entry, and how many of its steps have each status. */
  end({ error, fromFirst = false, now, startedAt, stepsCount }: GivingUp) {
    const count = { succeeded: 0, failed: 0, skipped: 0 }
    const steps: Record<string, Partial<StoredStep>> = {}
    let mayFail = fromFirst && ![...this.#steps.values()].some(({ status }) => status === "running")
    for (let index = 0; index < stepsCount; index++) {
      const step = this.#steps.get(index)
      const status = step?.status ?? "pending"
      if (status === "pending" && mayFail) {
        mayFail = false
        count.failed++
        steps[index] = { ...wholeStep({}), status: "failed", attempt: 1, error, startedAt: now, finishedAt: now }
      } else if (status === "pending") {
        count.skipped++
        steps[index] = { status: "skipped", skipReason: "run_stopped", finishedAt: now }
      } else if (status === "running") {
        count.failed++
        // As in any stopped run: a step that waits for another attempt has failed with the last one's error.
        const last = step!.wait?.kind === "retry" ? step!.error : null
        steps[index] = { ...step!, status: "failed", error: last ?? error, ports: [], wait: null, finishedAt: now }
      } else count[status]++
    }
    const stopped = { error, step: null }
    const run = { status: "failed", outcome: "cancelled", held: false, stopped, startedAt, finishedAt: now } as const
    const progress: Progress = { run, steps, edges: {} }
    return { progress, count }
  }
}
