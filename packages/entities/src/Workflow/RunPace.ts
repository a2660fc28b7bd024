import { Context } from "effect"

/** How often workflows may take runs on while they are paced (ms), how many of them each time, and how many runs each at the least. */
const everyMs = 200
const workflowsAtOnce = 2
const fewest = 4
/** The part of what a workflow takes on at once that is left while requests go on being stored slowly. */
const least = 0.05
/** How the part changes with each look, and how far looks are apart (ms). */
const fewer = 0.7
const more = 1.1
const looksMs = 50
/** Who has not asked for so long (ms) has nothing to take on: who has, asks a few times a second. */
const forgottenAfterMs = 1_000

/**
 * Paces runs behind requests. A run waits in SQL for as long as it has to, and a sender does not: while requests are stored several times as slowly as this
 * process can, few runs are taken on, and fewer as long as that lasts. With nothing slow, or nothing to store, runs are not
 * paced at all. Workflows take turns, and what all of them take on is bounded however many there are: each request of a flooded source begins a run of each.
 */
export class RunPace {
  readonly #isSlow: () => boolean
  readonly #clock: () => number
  #part = 1
  #lookedAt = Number.NEGATIVE_INFINITY
  /** The workflows that would take runs on, and when they asked last. */
  readonly #asked = new Map<string, number>()

  constructor(isSlow: () => boolean, clock: () => number = () => performance.now()) {
    this.#isSlow = isSlow
    this.#clock = clock
  }

  /** How many of `usual` runs the workflow may take on that did so last at `before`; 0: not yet. */
  most(workflow: string, usual: number, before: number): number {
    const now = this.#clock()
    if (now - this.#lookedAt >= looksMs) this.#look(now)
    if (this.#part === 1) return usual
    this.#asked.set(workflow, now)
    const turnMs = everyMs * Math.max(1, this.#asked.size / workflowsAtOnce)
    return now - before < turnMs ? 0 : Math.max(fewest, Math.floor(usual * this.#part))
  }

  #look(now: number): void {
    this.#lookedAt = now
    this.#part = this.#isSlow() ? Math.max(least, this.#part * fewer) : Math.min(1, this.#part * more)
    for (const [workflow, at] of this.#asked) if (now - at > forgottenAfterMs) this.#asked.delete(workflow)
  }

  get now(): number {
    return this.#clock()
  }
}

/** One for a process. */
export const Pace = Context.Reference<RunPace>("@tidegate/entities/Workflow/RunPace", {
  defaultValue: () => new RunPace(() => false)
})
