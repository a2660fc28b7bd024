import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"

/**
 * Kept between windows (ms): starts are counted when the request is handed to the network, and reach it a little later,
 * some later than others.
 */
export const guardMs = 25

/** Timers are no finer than this: a fast rate needs that much tolerance, or its ticks come too late to use it up. */
const toleranceMs = 20

/**
 * The rate of one destination, exact: never more than `limit` starts in any window of one period, and spread evenly over
 * it (after a rest, a burst of 1 up to one a second, else of 10, or of what 20 ms are worth).
 *
 * A slot is reserved before a delivery may start (`take`) and used when it does (`start`), which may be much later: it
 * has to be marked in SQL first. Until then it counts as if it were used at any moment, so that marks that were held up
 * and come back together are still no more than `limit`.
 *
 * Starts are remembered in slices of a ten-thousandth of the period, rounded up, so that the memory is bounded and the
 * error is on the side of the target.
 */
export class Pacer {
  readonly limit: number
  readonly period: number
  readonly slice: number
  readonly #interval: number
  readonly #tolerance: number
  readonly #times: Array<number> = []
  readonly #counts: Array<number> = []
  #head = 0
  #inWindow = 0
  #reserved = 0
  #next = 0
  /** How far the clock has been set back, and when it was read last. */
  #setBack = 0
  #seen = 0

  constructor(limit: number, period: RatePeriod) {
    this.limit = limit
    this.period = ratePeriodMs[period]
    this.slice = Math.max(1, this.period / 10_000)
    this.#interval = this.period / limit
    const burst = this.#interval >= 1_000 ? 1 : Math.max(Math.min(limit, 10), toleranceMs / this.#interval)
    this.#tolerance = (burst - 1) * this.#interval
  }

  /** Takes over starts made before, by an earlier owner or under an earlier limit. Oldest first. */
  remember(starts: ReadonlyArray<readonly [at: number, count: number]>): void {
    for (const [at, count] of starts) {
      this.#add(at + this.#setBack, count)
      this.#next = Math.max(this.#next, at + this.#setBack + this.#interval)
    }
  }

  /**
   * The earliest time a slot may be taken: `now` or later; Infinity: when one that is reserved has been used or given
   * back. To be asked when something waits: what the window holds back is spread out again, because a burst that came
   * back with every period would reach the target in less than a period if it took a little longer on its way than the next.
   */
  nextAt(now: number): number {
    const at = this.#monotonic(now)
    this.#forget(at)
    if (this.#inWindow + this.#reserved < this.limit) {
      return Math.max(at, this.#next - this.#tolerance) - this.#setBack
    }
    if (this.#inWindow === 0) return Number.POSITIVE_INFINITY
    const free = this.#times[this.#head]! + this.period + guardMs
    this.#next = Math.max(this.#next, free + this.#tolerance)
    return this.#next - this.#tolerance - this.#setBack
  }

  /** Reserves a slot, to be used (`start`) or given back (`release`). */
  take(now: number): void {
    this.#reserved++
    this.#next = Math.max(this.#next, this.#monotonic(now)) + this.#interval
  }

  /** A delivery that has a slot starts now. */
  start(now: number): void {
    this.#reserved--
    this.#add(this.#monotonic(now), 1)
  }

  /** A slot that was taken is not used. */
  release(): void {
    this.#reserved--
  }

  /** A clock that is set back goes on from where it was: what has started does not become later by it. */
  #monotonic(now: number): number {
    if (now < this.#seen) this.#setBack += this.#seen - now
    this.#seen = now
    return now + this.#setBack
  }

  #add(at: number, count: number): void {
    const time = Math.ceil(at / this.slice) * this.slice
    const last = this.#times.length - 1
    if (last >= this.#head && this.#times[last]! >= time) this.#counts[last]! += count
    else {
      this.#times.push(time)
      this.#counts.push(count)
    }
    this.#inWindow += count
  }

  #forget(now: number): void {
    while (this.#head < this.#times.length && this.#times[this.#head]! <= now - this.period - guardMs) {
      this.#inWindow -= this.#counts[this.#head]!
      this.#head++
    }
    if (this.#head > 1024 && this.#head * 2 > this.#times.length) {
      this.#times.splice(0, this.#head)
      this.#counts.splice(0, this.#head)
      this.#head = 0
    }
  }
}
