import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"
import { largestShare, type Lease, type Report } from "./IngestBudget.ts"

/** A lease, with the remaining times of itself and of its period. */
export interface Leased extends Lease {
  readonly remainingMs: number
  readonly leaseMs: number
}

export type Asked = Omit<Report, "door">

/** Milliseconds between requests for a lease while there was none or no answer. A raised limit takes effect at most this late. */
export const againMs = 500
/** Demand is measured over at least this time (ms), and requested for `foreseenMs` in advance. */
const measuredMs = 200
const foreseenMs = 1_000

/**
 * The part of a source's ingest limit that one ingress process may use: a counter that decreases, and when to ask for more. No request
 * waits for an answer of the source's actor:
 *
 * - while an answer is pending, ingress accepts as many more as its last lease allowed;
 * - without an answer it fails open, because requests that are not accepted are lost, and accepting must not depend on a runner: it uses
 *   the reach of its lease, in later periods its share, and the whole limit if it never had a lease.
 *
 * So all processes together exceed the limit by at most a lease each. Times are milliseconds of one monotonic clock.
 */
export class IngestLease {
  #limit = 0
  #periodMs = 0
  /** Accepted requests, and how many of them have been reported; both are never reset. */
  #used = 0
  #reported = 0
  /** Requests accepted before the present period. */
  #before = 0
  /** Upper bounds of `used`: by the lease, the addition while an answer is pending, and the bound without an answer. */
  #ceiling = 0
  #credit = 0
  #reach = 0
  /** Null: never had a lease. */
  #share: number | null = null
  /** When the period ends, and when the lease ends. */
  #endsAt = Number.NEGATIVE_INFINITY
  #lastsUntil = Number.NEGATIVE_INFINITY
  #leaseMs = 0
  #askAt = Number.NEGATIVE_INFINITY
  #asked: Asked | null = null
  #isUnheard = false
  /** The whole limit of the period is used up, by all processes together. */
  #isSpent = false
  #seen = 0
  #seenSince = 0
  /** Requests per millisecond. */
  #rate = 0

  /** Changes the limit; the lease under the old one ends. */
  limitTo(limit: number, period: RatePeriod): void {
    const periodMs = ratePeriodMs[period]
    if (limit === this.#limit && periodMs === this.#periodMs) return
    if (periodMs !== this.#periodMs) this.#endsAt = Number.NEGATIVE_INFINITY
    this.#limit = limit
    this.#periodMs = periodMs
    this.#credit = this.#largest
    this.#ceiling = this.#used
    this.#reach = this.#used
    this.#share = null
    this.#isSpent = false
    this.#asked = null
    this.#askAt = Number.NEGATIVE_INFINITY
  }

  /** Whether ingress decides alone, because the actor does not answer. */
  get isUnheard(): boolean {
    return this.#isUnheard
  }

  /** Whether accepted requests still have to be reported after a missing answer. */
  get isUnreported(): boolean {
    return this.#isUnheard && this.#used !== this.#reported
  }

  /** A request has arrived. Returns the lease request to send now; null: none. */
  request(now: number): Asked | null {
    this.#seen++
    return this.ask(now)
  }

  /** The same without a request. Each lease request ends with `answered` or `unanswered`. */
  ask(now: number): Asked | null {
    if (now >= this.#endsAt) this.#begin(now)
    if (!this.#isUnheard && now >= this.#lastsUntil) this.#rest()
    if (this.#asked !== null || now < this.#askAt) return null
    const isLow = this.#ceiling - this.#used <= this.#credit / 2
    const isHalfOver = now >= this.#lastsUntil - this.#leaseMs / 2
    if (!isLow && !isHalfOver && !this.#isUnheard) return null
    this.#asked = {
      used: this.#used,
      told: this.#reported,
      reach: this.#share === null ? null : Math.max(0, this.#reach - this.#used),
      wanted: this.#wanted(now)
    }
    return this.#asked
  }

  answered(asked: Asked, leased: Leased, now: number): void {
    if (asked !== this.#asked) return
    const { used } = asked
    const { budget, leaseMs, reach, remainingMs, share } = leased
    this.#asked = null
    this.#isUnheard = false
    this.#reported = used
    this.#ceiling = used + budget
    this.#reach = used + reach
    this.#share = share
    this.#isSpent = budget === 0
    this.#credit = Math.max(1, budget)
    this.#endsAt = now + remainingMs
    this.#leaseMs = leaseMs
    this.#lastsUntil = now + leaseMs
    this.#askAt = this.#isSpent ? now + againMs : now
  }

  unanswered(asked: Asked, now: number): void {
    if (asked !== this.#asked) return
    this.#asked = null
    this.#isUnheard = true
    this.#askAt = now + againMs
    if (this.#share === null) this.#reach = Math.max(this.#reach, this.#before + this.#limit)
  }

  /** Milliseconds until a request may be accepted; 0: now. */
  wait(now: number): number {
    if (this.#used < this.#maxNow()) return 0
    return this.#isSpent || this.#isUnheard ? Math.max(1, this.#endsAt - now) : 1
  }

  /** Accepts one request, if the limit allows. Returns whether it did. */
  take(): boolean {
    if (this.#used >= this.#maxNow()) return false
    this.#used++
    return true
  }

  /** Returns one that was taken but not accepted. */
  giveBack(): void {
    this.#used--
  }

  /** The largest lease. */
  get #largest(): number {
    return Math.ceil(this.#limit / largestShare)
  }

  #maxNow(): number {
    if (this.#isUnheard) return this.#reach
    return this.#asked !== null && !this.#isSpent ? this.#ceiling + this.#credit : this.#ceiling
  }

  /** Ends an unused lease, so that other processes may use its reach. */
  #rest(): void {
    this.#ceiling = Math.min(this.#ceiling, this.#used)
    this.#reach = Math.min(this.#reach, this.#used + this.#largest)
  }

  /** Begins a period by the local clock, until an answer brings the real one. */
  #begin(now: number): void {
    // An old share says little: the source's requests may go to other processes now.
    if (!this.#isUnheard && now >= this.#endsAt + this.#periodMs) this.#share = null
    this.#endsAt = now + this.#periodMs
    this.#lastsUntil = this.#endsAt
    this.#isSpent = false
    this.#credit = this.#largest
    this.#before = this.#used
    // Accepted requests of an earlier period need no report.
    this.#reported = this.#used
    const share = this.#share ?? (this.#isUnheard ? this.#limit : 0)
    this.#ceiling = this.#used + share
    this.#reach = this.#ceiling
    this.#leaseMs = 2 * this.#periodMs
    this.#askAt = Number.NEGATIVE_INFINITY
  }

  #wanted(now: number): number {
    const elapsed = now - this.#seenSince
    if (elapsed >= measuredMs) {
      this.#rate = this.#seen / elapsed
      this.#seen = 0
      this.#seenSince = now
    }
    return Math.ceil(
      Math.max(this.#rate, this.#seen / measuredMs) * Math.min(foreseenMs, this.#periodMs / largestShare)
    )
  }
}
