import { Context } from "effect"

/** How often a workflow may take runs on while they are paced (ms), and how many of them at the least. */
const everyMs = 200
const fewest = 4
/** The part of what a workflow takes on at once that is left while requests go on being stored slowly. */
const least = 0.05
/** How the part changes with each look, and how far looks are apart (ms). */
const fewer = 0.7
const more = 1.1
const looksMs = 50

/**
 * Paces runs behind requests. A run waits in SQL for as long as it has to, and a sender does not: while requests are stored several times as slowly as this
 * process can, each workflow takes on few runs at a time, and fewer as long as that lasts. With nothing slow, or nothing to store, runs are not
 * paced at all. Each workflow has the same part, whatever the others have to do.
 */
export class RunPace {
  readonly #isSlow: () => boolean
  readonly #clock: () => number
  #part = 1
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(isSlow: () => boolean, clock: () => number = () => performance.now()) {
    this.#isSlow = isSlow
    this.#clock = clock
  }

  /** How many of `usual` runs a workflow may take on that did so last at `before`; 0: not yet. */
  most(usual: number, before: number): number {
    const now = this.#clock()
    if (now - this.#lookedAt >= looksMs) {
      this.#lookedAt = now
      this.#part = this.#isSlow() ? Math.max(least, this.#part * fewer) : Math.min(1, this.#part * more)
    }
    if (this.#part === 1) return usual
    return now - before < everyMs ? 0 : Math.max(fewest, Math.floor(usual * this.#part))
  }

  get now(): number {
    return this.#clock()
  }
}

/** One for a process. */
export const Pace = Context.Reference<RunPace>("@tidegate/entities/Workflow/RunPace", {
  defaultValue: () => new RunPace(() => false)
})
