import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"
import { largestShare, type Lease, type Report } from "./IngestBudget.ts"

/** A lease, and for how long it and its period last. */
export interface Leased extends Lease {
  readonly remainingMs: number
  readonly leaseMs: number
}

export type Asked = Omit<Report, "door">

/** How often a door asks again that has got nothing, or no answer (ms): also how late it hears of a limit that was raised. */
export const againMs = 500
/** Demand is measured over this time at the least (ms), and foreseen for as much as this. */
const measuredMs = 200
const foreseenMs = 1_000

/**
 * What one door may accept of one source: a count that goes down, and when to ask for more. Nobody waits for the answer:
 *
 * - while one is under way, the door goes on by as much as its last lease was;
 * - when none has come, it fails open, because what is not accepted is lost, and a runner must not be needed to accept: it goes on
 *   up to the lease's reach, in later periods by its share, and by the whole limit when it has never had a lease.
 *
 * So all doors together accept no more than the limit, and a lease each. Times are milliseconds of one monotonic clock.
 */
export class IngestLease {
  #limit = 0
  #periodMs = 0
  /** Accepted, and how much of that has been told; both for ever. */
  #used = 0
  #told = 0
  /** Accepted before the period. */
  #before = 0
  /** How far `used` may go: by the lease, by how much more while an answer is under way, and without one. */
  #ceiling = 0
  #credit = 0
  #reach = 0
  /** Null: never had a lease. */
  #share: number | null = null
  /** Until when the period lasts, and the lease. */
  #endsAt = Number.NEGATIVE_INFINITY
  #lastsUntil = Number.NEGATIVE_INFINITY
  #leaseMs = 0
  #askAt = Number.NEGATIVE_INFINITY
  #asked: Asked | null = null
  #isUnheard = false
  /** Nothing is left of the period for anybody. */
  #isSpent = false
  #seen = 0
  #seenSince = 0
  /** Requests a millisecond. */
  #rate = 0

  /** Goes by another limit from now on: what was leased under the one before is over. */
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

  /** Whether it goes on by itself, because nobody answers. */
  get isUnheard(): boolean {
    return this.#isUnheard
  }

  /** Whether there is something to report that nobody has answered for. */
  get isUntold(): boolean {
    return this.#isUnheard && this.#used !== this.#told
  }

  /** A request has come. What to ask for now; null: nothing. */
  request(now: number): Asked | null {
    this.#seen++
    return this.ask(now)
  }

  /** The same, without a request. What is asked for ends with `answered` or `unanswered`. */
  ask(now: number): Asked | null {
    if (now >= this.#endsAt) this.#begin(now)
    if (!this.#isUnheard && now >= this.#lastsUntil) this.#rest()
    if (this.#asked !== null || now < this.#askAt) return null
    const isLow = this.#ceiling - this.#used <= this.#credit / 2
    const isHalfOver = now >= this.#lastsUntil - this.#leaseMs / 2
    if (!isLow && !isHalfOver && !this.#isUnheard) return null
    this.#asked = {
      used: this.#used,
      told: this.#told,
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
    this.#told = used
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

  /** Milliseconds until there is something again; 0: there is. */
  wait(now: number): number {
    if (this.#used < this.#maxNow()) return 0
    return this.#isSpent || this.#isUnheard ? Math.max(1, this.#endsAt - now) : 1
  }

  /** Whether one more is accepted. */
  take(): boolean {
    if (this.#used >= this.#maxNow()) return false
    this.#used++
    return true
  }

  /** One that was taken has not been accepted after all. */
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

  /** Its lease is over, because no requests came: others may have what it could reach. */
  #rest(): void {
    this.#ceiling = Math.min(this.#ceiling, this.#used)
    this.#reach = Math.min(this.#reach, this.#used + this.#largest)
  }

  /** A period of its own, until an answer says which one it is. */
  #begin(now: number): void {
    // A share of long ago says little: others may have the source's requests now.
    if (!this.#isUnheard && now >= this.#endsAt + this.#periodMs) this.#share = null
    this.#endsAt = now + this.#periodMs
    this.#lastsUntil = this.#endsAt
    this.#isSpent = false
    this.#credit = this.#largest
    this.#before = this.#used
    // What was accepted in an earlier period is no longer anybody's concern.
    this.#told = this.#used
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
