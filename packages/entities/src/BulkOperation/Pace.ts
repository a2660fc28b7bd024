/**
 * How fast bulk operations run; pure. Without live traffic they run as fast as their targets are delivered. Beside live traffic
 * they run in small steps. Their rate grows while live traffic is not slowed down, and falls as soon as it is. The effect is
 * measured before every step and compared with its usual value: how long a small query takes (it waits for the event loop, a
 * connection and the server, as any request does), and how long live events wait for their delivery.
 */

/** Targets of one step without live traffic. */
const quietBatch = 250

/** Targets per second beside live traffic. The minimum lets 100,000 targets finish within ten minutes under any load. */
export const floor = 200
export const ceiling = 2_000
/** The factors by which a step raises the rate, or lowers it when live traffic is slowed down. */
const grows = 1.05
const falls = 0.7
/**
 * Live traffic counts as slowed down when a measurement is this many times its usual value, and at least this many milliseconds
 * above it. Smaller differences are noise that other calls cause as well.
 */
const felt = 2
const feltMs = 10
/** The usual value is the lowest recent one. Each step lets it rise by this factor. */
const forgets = 1.002
/** The weight of the last measurement in the running average. */
const weight = 0.25
/** The interval of the steps beside live traffic (ms). */
const stepMs = 100

/** One measured quantity, compared with its usual value. */
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
  /** The time (ms) over which its targets come due, and after which the next step begins. */
  readonly overMs: number
}

/** The live traffic of the last seconds. */
export interface Live {
  /** Requests received. */
  readonly requests: number
  /** How long its events have waited for their first attempt (ms); null: no event has waited for one. */
  readonly waitMs: number | null
}

/** The pace of a process, which all of its operations share. */
export class Pacing {
  #rate = floor
  readonly #look = new Feeling()
  readonly #wait = new Feeling()

  /** The pace of the next step, by the live traffic and by how long the query for it took (ms). */
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

/** Schedules steps one after the other. A late step does not delay the following ones, unless it is late by more than `maxMs`. */
export class Steps {
  #until: number | null = null

  /** How long to wait (ms) after a step that began at `began` and takes `forMs`. */
  rest(began: number, forMs: number, now: number, maxMs: number): number {
    this.#until = (this.#until === null ? began : Math.max(this.#until, began - maxMs)) + forMs
    return Math.max(0, this.#until - now)
  }
}

/** No more is queued while more than half of what the last step queued still waits: the target is slower than the operation. */
export const isCrowded = (waiting: number, queued: number): boolean => waiting > 0 && waiting > queued / 2

/** When to check again whether the target is behind (ms): less often the longer it has been. */
export const lookAgain = (looked: number): number => Math.min(1_000, 25 * 2 ** Math.min(looked, 6))

/**
 * The longest wait for a slow target (ms). With live traffic of its own the target may stay behind for ever, and the operation
 * still has to progress.
 */
export const maxPatienceMs = 5_000
