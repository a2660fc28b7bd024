import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"

/**
 * The margin between windows (ms). Starts are counted when the request is handed to the network; requests reach it a little
 * later, with varying delay.
 */
export const guardMs = 25

/** The resolution of timers (ms). A fast rate needs this much tolerance, otherwise timers are too late to use it up. */
const toleranceMs = 20

/**
 * The exact rate limiter of one destination: never more than `limit` starts in any window of one period, spread evenly over it.
 * (After idle time there is a burst: 1 at rates of up to one per second, otherwise 10 or what 20 ms allow.)
 *
 * A permit is reserved before a delivery may start (`take`) and used when it starts (`start`). That may be much later, because
 * the start has to be stored first. Until then the permit counts as if it could be used at any moment. So starts whose marks were
 * delayed and then return together still do not exceed `limit`.
 *
 * Starts are remembered in slices of a ten-thousandth of the period, rounded up, so that memory is bounded and an error only
 * makes the rate lower.
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
  /** How far the clock was set back, and when it was read last. */
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

  /** Takes over earlier starts, by an earlier owner or under an earlier limit. Oldest first. */
  remember(starts: ReadonlyArray<readonly [at: number, count: number]>): void {
    for (const [at, count] of starts) {
      this.#add(at + this.#setBack, count)
      this.#next = Math.max(this.#next, at + this.#setBack + this.#interval)
    }
  }

  /**
   * The earliest time a permit may be taken: `now` or later; Infinity: when a reserved permit has been used or released. To be
   * called when something waits: starts that the window delayed are spread out again. Otherwise a burst would repeat in every
   * period, and two bursts would reach the target within less than a period when the first one takes a little longer on its way.
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

  /** Reserves a permit, to be used (`start`) or returned (`release`). */
  take(now: number): void {
    this.#reserved++
    this.#next = Math.max(this.#next, this.#monotonic(now)) + this.#interval
  }

  /** A delivery that has a permit starts now. */
  start(now: number): void {
    this.#reserved--
    this.#add(this.#monotonic(now), 1)
  }

  /** A reserved permit is not used. */
  release(): void {
    this.#reserved--
  }

  /** When the clock is set back, time continues from where it was: earlier starts must not move into the future. */
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
