import { Context } from "effect"

/**
 * Runs per second that all workflows of a process start together while they are paced: the first rate, the lowest, and the rate
 * above which pacing ends.
 */
const rates = { first: 1_000, min: 100, max: 4_000 }
/**
 * Runs are started in groups: as many as the rate allows in this time (ms), but at least `minChunk`. Small groups often delay
 * senders less than a large group does.
 */
const chunkMs = 20
const minChunk = 4
/** The factors by which each check changes the rate, and the time (ms) between checks. */
const fewer = 0.7
const more = 1.1
const looksMs = 50
/** After this many checks in a row that found nothing slow, each further one changes the rate by this factor. */
const calm = { looks: 4, more: 2 }
/** A workflow that has not asked for this time (ms) has no runs to start: one that has some asks a few times a second. */
const forgottenAfterMs = 1_000

interface Asker {
  askedAt: number
  /** When it may start runs again. */
  nextAt: number
}

/**
 * Slows runs down in favour of requests. A run can wait in SQL, but a sender is waiting for its answer. While storing requests
 * takes several times as long as it can in this process, runs are started at a limited rate, which falls as long as that lasts.
 * When nothing is slow any more, or nothing is stored, the rate rises, slowly at first, until runs are not paced. The rate is for
 * the whole process, because each request of a flooded source begins a run in each of its workflows. Workflows have equal shares
 * of it and use them one after the other: all at once would hold the event loop too long.
 */
export class RunPace {
  readonly #isSlow: () => boolean
  readonly #clock: () => number
  #rate = Number.POSITIVE_INFINITY
  #lookedAt = Number.NEGATIVE_INFINITY
  /** How many checks in a row have found nothing slow. */
  #calmLooks = 0
  /** When the next workflow may start runs. */
  #nextAt = 0
  /** The workflows that have runs to start. */
  readonly #askers = new Map<string, Asker>()

  constructor(isSlow: () => boolean, clock: () => number = () => performance.now()) {
    this.#isSlow = isSlow
    this.#clock = clock
  }

  /** How long (ms) this workflow has to wait before it starts runs. */
  waitMs(workflow: string): number {
    const now = this.#clock()
    if (now - this.#lookedAt >= looksMs) this.#look(now)
    if (!this.#isPaced) return 0
    const asker = this.#askers.get(workflow) ?? { askedAt: now, nextAt: now }
    asker.askedAt = now
    this.#askers.set(workflow, asker)
    return Math.max(0, this.#nextAt - now, asker.nextAt - now)
  }

  /** How many runs this workflow may start now, at most `usual`. It returns with `giveBack` those that it does not find. */
  take(workflow: string, usual: number): number {
    if (this.waitMs(workflow) > 0) return 0
    if (!this.#isPaced) return usual
    const runs = Math.min(usual, Math.max(minChunk, Math.floor((this.#rate * chunkMs) / 1_000)))
    this.#use(workflow, runs)
    return runs
  }

  giveBack(workflow: string, runs: number): void {
    if (this.#isPaced && runs > 0) this.#use(workflow, -runs)
  }

  get #isPaced(): boolean {
    return this.#rate <= rates.max
  }

  #use(workflow: string, runs: number): void {
    const now = this.#clock()
    const asker = this.#askers.get(workflow)
    const ms = (runs * 1_000) / this.#rate
    // A late workflow catches up by one group only, not by all the time in which nobody asked.
    const after = (at: number, ms: number): number => Math.max(at, now - Math.abs(ms)) + ms
    this.#nextAt = after(this.#nextAt, ms)
    if (asker !== undefined) asker.nextAt = after(asker.nextAt, ms * this.#askers.size)
  }

  #look(now: number): void {
    this.#lookedAt = now
    if (this.#isSlow()) {
      this.#calmLooks = 0
      this.#rate = this.#isPaced ? Math.max(rates.min, this.#rate * fewer) : rates.first
    } else if (this.#isPaced) {
      this.#calmLooks++
      this.#rate *= this.#calmLooks > calm.looks ? calm.more : more
    }
    for (const [workflow, { askedAt }] of this.#askers) {
      if (!this.#isPaced || now - askedAt > forgottenAfterMs) this.#askers.delete(workflow)
    }
  }
}

/** One for each process. */
export const Pace = Context.Reference<RunPace>("@tidegate/entities/Workflow/RunPace", {
  defaultValue: () => new RunPace(() => false)
})
