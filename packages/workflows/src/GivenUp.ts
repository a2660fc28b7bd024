import { type Progress, type StoredStep, progressIn, wholeStep } from "./Progress.ts"
import type { StepError } from "./StepKind.ts"

/** What is to be known of a run that is given up, beside its parts. */
export interface GivingUp {
  readonly error: StepError
  readonly stepsCount: number
  /** Unix milliseconds. */
  readonly startedAt: number | null
  readonly now: number
  /** Where nothing was under way the first step that had not begun has failed: so the run can be taken up again from there. */
  readonly fromFirst?: boolean
}

/**
 * The steps of a run that nobody can carry on: its version may be unreadable, or code that judges it breaks down. So nothing is evaluated, and no
 * plan is asked for: of what its parts tell, what was under way has failed, and what had not begun is skipped.
 */
export class GivenUp {
  readonly #steps = new Map<number, StoredStep>()

  /** The parts are taken in their order. */
  take(steps: string): void {
    for (const [index, stored] of Object.entries(progressIn(steps).steps ?? {})) {
      this.#steps.set(Number(index), wholeStep(stored))
    }
  }

  /** The run's last part, and how many of its steps have come to what. */
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
        // As of any run that is stopped: what waits for another attempt has failed of the last one.
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
