/**
 * How fast bulk operations go: pure. With nothing live, as fast as their targets are delivered. Beside live traffic in small steps, at a rate that grows
 * while live traffic feels nothing of it and falls as soon as it does. What it feels is measured before every step, and compared with what it was when
 * it was quiet: how long a look at the database takes, which waits for the event loop, a connection and the server as whatever a request needs does; and
 * how long live events wait for their delivery.
 */

/** Of a step that nobody else waits for. */
const quietBatch = 250

/**
 * Targets a second beside live traffic: at the least, so that 100,000 come to their end within ten minutes whatever else there is; and at the most.
 */
export const floor = 200
export const ceiling = 2_000
/** What a step makes of the rate, and what is left of it where live traffic feels it. */
const grows = 1.05
const falls = 0.7
/** What takes so many times longer than usual, and at least so many milliseconds, is felt: less is what any other call makes of it. */
const felt = 2
const feltMs = 10
/** What is usual is the least of late, which each step lets rise by so much. */
const forgets = 1.002
/** What the last measurement weighs among those before it. */
const weight = 0.25
/** Beside live traffic there is a step so often (ms). */
const stepMs = 100

/** One of the things that are measured, against what it usually is. */
class Feeling {
  #recent: number | null = null
  #usual = Number.POSITIVE_INFINITY

  take(ms: number): void {
    this.#recent = this.#recent === null ? ms : this.#recent + weight * (ms - this.#recent)
    this.#usual = Math.min(this.#recent, this.#usual * forgets)
  }

  get isFelt(): boolean {
    return this.#recent !== null && this.#recent > Math.max(felt * this.#usual, this.#usual + feltMs)
  }
}

export interface Pace {
  /** Targets of the next step. */
  readonly batch: number
  /** Over how long what it makes comes due (ms), and the next step begins. */
  readonly overMs: number
}

/** What is known of live traffic: of the last seconds. */
export interface Live {
  /** How many requests have come in. */
  readonly requests: number
  /** How long its events have waited for their first attempt (ms); null: none has waited for one. */
  readonly waitMs: number | null
}

/** The pace of a process, which all of its operations share. */
export class Pacing {
  #rate = floor
  readonly #look = new Feeling()
  readonly #wait = new Feeling()

  /** By what is live, and how long it took to ask (ms). */
  next({ requests, waitMs }: Live, lookMs: number): Pace {
    this.#look.take(lookMs)
    if (waitMs !== null) this.#wait.take(waitMs)
    if (requests === 0) return { batch: quietBatch, overMs: 0 }
    this.#rate =
      this.#look.isFelt || (waitMs !== null && this.#wait.isFelt)
        ? Math.max(floor, this.#rate * falls)
        : Math.min(ceiling, this.#rate * grows)
    return { batch: Math.round((this.#rate * stepMs) / 1_000), overMs: stepMs }
  }
}

/** When steps may begin, one after the other: one that came late does not make those behind it late, but for more than `maxMs`. */
export class Steps {
  #until: number | null = null

  /** How long to wait (ms) behind a step that began at `began` and takes its turn for `forMs`. */
  rest(began: number, forMs: number, now: number, maxMs: number): number {
    this.#until = (this.#until === null ? began : Math.max(this.#until, began - maxMs)) + forMs
    return Math.max(0, this.#until - now)
  }
}

/** No more is queued while this share of what was queued before still waits for its turn: its target is slower than that. */
export const isCrowded = (waiting: number, queued: number): boolean => waiting > 0 && waiting > queued / 2

/** When to look again whether it is crowded (ms), the longer it has been. */
export const lookAgain = (looked: number): number => Math.min(1_000, 25 * 2 ** Math.min(looked, 6))

/** So long it waits for a crowded target at the most (ms): with live traffic of its own that may be so for ever, and a little has to go on. */
export const maxPatienceMs = 5_000
