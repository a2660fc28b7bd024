import { Context } from "effect"

/**
 * Tells the poller about runs of this process. Runs in hand stay due in the database, so that the next process finds them after a
 * crash. The poller skips them: otherwise it would read them and wake the workflow for as long as a step takes. It also learns of
 * runs that begin to wait, because they may be due before its next read.
 */
export class RunsInHand {
  readonly #ids = new Set<string>()
  #soonest = Infinity

  add(id: string): void {
    this.#ids.add(id)
  }

  delete(id: string): void {
    this.#ids.delete(id)
  }

  /** Empty when there are so many that skipping them costs more than it saves. Then the poller always finds something. */
  get leftOut(): ReadonlyArray<string> {
    return this.#ids.size > maxLeftOut ? [] : [...this.#ids]
  }

  /** A run waits until then (Unix ms). */
  waits(until: number): void {
    this.#soonest = Math.min(this.#soonest, until)
  }

  /** The earliest due time of the runs that have begun to wait since `seen`. */
  get soonest(): number {
    return this.#soonest
  }

  /** The poller reads now, and sees all waits. */
  seen(): void {
    this.#soonest = Infinity
  }
}

const maxLeftOut = 500

/** The runs of this process. */
export const OwnRuns = Context.Reference<RunsInHand>("@tidegate/entities/Workflow/OwnRuns", {
  defaultValue: () => new RunsInHand()
})
