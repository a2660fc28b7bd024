import { Context } from "effect"

/**
 * What this process knows of runs and the sweep cannot see. The runs that it has in hand stay due in the database, so that whoever comes after it finds
 * them; the sweep leaves them out, or it would look and wake for as long as a step takes. Of a run that begins to wait it hears, because it may come
 * due before the sweep looks again.
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

  /** None where there are so many that leaving them out costs more than it spares: then there is always something to look for. */
  get leftOut(): ReadonlyArray<string> {
    return this.#ids.size > maxLeftOut ? [] : [...this.#ids]
  }

  /** A run waits until then (Unix ms). */
  waits(until: number): void {
    this.#soonest = Math.min(this.#soonest, until)
  }

  /** When the first of those that have begun to wait since `seen` comes due. */
  get soonest(): number {
    return this.#soonest
  }

  /** Whoever looks now sees all that wait. */
  seen(): void {
    this.#soonest = Infinity
  }
}

const maxLeftOut = 500

/** Those of the process. */
export const OwnRuns = Context.Reference<RunsInHand>("@tidegate/entities/Workflow/OwnRuns", {
  defaultValue: () => new RunsInHand()
})
