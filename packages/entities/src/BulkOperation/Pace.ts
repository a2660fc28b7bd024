/**
 * How fast bulk operations go: pure. With nothing live, as fast as their targets are delivered. Beside live traffic in small steps, at a rate that grows
 * while live traffic feels nothing of it and falls as soon as it does. What it feels is read off a look at the database that every step begins
 * with: it waits for the event loop, a connection and the server, as whatever a request needs does.
 */

/** From so many requests a second on there is live traffic that must not notice. */
const busyFrom = 5
/** Of a step that nobody else waits for. */
const quietBatch = 250

/** Targets a second beside live traffic: at the least, so that it comes to an end; and at the most, which is a small part of what a core can do. */
const floor = 40
const ceiling = 160
/** What a step adds to the rate, and what is left of it where a look takes too long. */
const grows = 4
const falls = 0.7
/** A look that takes so many times longer than usual is felt; what is usual is the least of late, which each step lets rise by so much. */
const felt = 2
const forgets = 1.002
/** What the last look weighs among those before it. */
const weight = 0.25
/** Beside live traffic there is a step so often (ms). */
const stepMs = 100

export interface Pace {
  /** Targets of the next step. */
  readonly batch: number
  /** Over how long what it makes comes due (ms), and the next step begins. */
  readonly overMs: number
}

/** The pace of a process, which all of its operations share. */
export class Pacing {
  #rate = floor
  #look: number | null = null
  #usual = Number.POSITIVE_INFINITY

  /** By how many requests have come in within a second, and how long it took to ask. */
  next(liveRequests: number, lookMs: number): Pace {
    this.#look = this.#look === null ? lookMs : this.#look + weight * (lookMs - this.#look)
    this.#usual = Math.min(this.#look, this.#usual * forgets)
    if (liveRequests < busyFrom) return { batch: quietBatch, overMs: 0 }
    this.#rate =
      this.#look > felt * this.#usual ? Math.max(floor, this.#rate * falls) : Math.min(ceiling, this.#rate + grows)
    return { batch: Math.round((this.#rate * stepMs) / 1_000), overMs: stepMs }
  }
}

/** No more is queued while this share of what was queued before still waits for its turn: its target is slower than that. */
export const isCrowded = (waiting: number, queued: number): boolean => waiting > 0 && waiting > queued / 2

/** When to look again whether it is crowded (ms), the longer it has been. */
export const lookAgain = (looked: number): number => Math.min(1_000, 25 * 2 ** Math.min(looked, 6))

/** So long it waits for a crowded target at the most (ms): with live traffic of its own that may be so for ever, and a little has to go on. */
export const mostPatienceMs = 5_000
