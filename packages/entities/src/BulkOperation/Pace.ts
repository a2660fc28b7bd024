/** How much of a bulk operation is done at once, and when the next part: pure. */

export interface Pace {
  /** Targets of the next step. */
  readonly batch: number
  /** After a step that took so long, how long to leave the machine to others (both in ms). */
  readonly rest: (tookMs: number) => number
}

/** From so many requests a second on there is live traffic that must not notice. */
const busyFrom = 5

/** Nobody waits for anything else: half of the time. */
const quiet: Pace = { batch: 100, rest: (tookMs) => Math.max(5, tookMs) }

/**
 * Small parts, so that what comes in meanwhile waits behind few deliveries, and a tenth of the time: a step takes longer on a
 * machine that has more to do, and so leaves it more.
 */
const busy: Pace = { batch: 10, rest: (tookMs) => Math.min(2_000, Math.max(40, 9 * tookMs)) }

/** By how many requests have come in within a second. */
export const paceAt = (liveRequests: number): Pace => (liveRequests < busyFrom ? quiet : busy)

/** No more is queued while this share of what was queued before still waits for its turn: its target is slower than that. */
export const isCrowded = (waiting: number, queued: number): boolean => waiting > 0 && waiting > queued / 2

/** When to look again whether it is crowded (ms), the longer it has been. */
export const lookAgain = (looked: number): number => Math.min(1_000, 25 * 2 ** Math.min(looked, 6))

/** So long it waits for a crowded target at the most (ms): with live traffic of its own that may be so for ever, and a little has to go on. */
export const mostPatienceMs = 5_000
