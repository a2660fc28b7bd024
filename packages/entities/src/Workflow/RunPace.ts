import { Context } from "effect"

/** Runs a second that all workflows of a process take on together while they are paced: at first, at the least, and from where on they are paced no more. */
const rates = { first: 1_000, min: 100, max: 4_000 }
/** Runs of so long (ms) are taken on together, and no fewer than these: a few often hold up senders less than many at once. */
const chunkMs = 20
const minChunk = 4
/** How the rate changes with each look, and how far looks are apart (ms). */
const fewer = 0.7
const more = 1.1
const looksMs = 50
/** A workflow that has not asked for so long (ms) has nothing to take on: one that has, asks a few times a second. */
const forgottenAfterMs = 1_000

interface Asker {
  askedAt: number
  /** When it may take runs on again. */
  nextAt: number
}

/**
 * Paces runs behind requests. A run waits in SQL for as long as it has to, and a sender does not: while requests are stored several times as slowly as this
 * process can, runs are taken on at a rate, and at a lower one for as long as that lasts. With nothing slow, or nothing to store, runs are not
 * paced at all. The rate is that of the process, because each request of a flooded source begins a run of each of its workflows. Workflows have equal parts
 * of it, and take them one after the other: all at once would hold the event loop for everybody.
 */
export class RunPace {
  readonly #isSlow: () => boolean
  readonly #clock: () => number
  #rate = Number.POSITIVE_INFINITY
  #lookedAt = Number.NEGATIVE_INFINITY
  /** When the next workflow may take runs on. */
  #nextAt = 0
  /** The workflows that would take runs on. */
  readonly #askers = new Map<string, Asker>()

  constructor(isSlow: () => boolean, clock: () => number = () => performance.now()) {
    this.#isSlow = isSlow
    this.#clock = clock
  }

  /** How long (ms) this workflow waits before it takes runs on. */
  waitMs(workflow: string): number {
    const now = this.#clock()
    if (now - this.#lookedAt >= looksMs) this.#look(now)
    if (!this.#isPaced) return 0
    const asker = this.#askers.get(workflow) ?? { askedAt: now, nextAt: now }
    asker.askedAt = now
    this.#askers.set(workflow, asker)
    return Math.max(0, this.#nextAt - now, asker.nextAt - now)
  }

  /** How many of `usual` runs this workflow takes on now. It gives back those that it does not find. */
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
    // Whoever comes late makes up for it once, and not for all the time in which nobody asked.
    const after = (at: number, ms: number): number => Math.max(at, now - Math.abs(ms)) + ms
    this.#nextAt = after(this.#nextAt, ms)
    if (asker !== undefined) asker.nextAt = after(asker.nextAt, ms * this.#askers.size)
  }

  #look(now: number): void {
    this.#lookedAt = now
    if (this.#isSlow()) this.#rate = this.#isPaced ? Math.max(rates.min, this.#rate * fewer) : rates.first
    else if (this.#isPaced) this.#rate *= more
    for (const [workflow, { askedAt }] of this.#askers) {
      if (!this.#isPaced || now - askedAt > forgottenAfterMs) this.#askers.delete(workflow)
    }
  }
}

/** One for a process. */
export const Pace = Context.Reference<RunPace>("@tidegate/entities/Workflow/RunPace", {
  defaultValue: () => new RunPace(() => false)
})
