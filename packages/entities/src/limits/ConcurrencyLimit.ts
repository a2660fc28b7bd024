/**
 * How an exchange with a target ended. `answered`: with any status. `overloaded`: it timed out, was cut off or was refused, or
 * the target answered that it is overloaded. `unsent`: the target never got it, so it says nothing about the target.
 */
export type Ending = "answered" | "overloaded" | "unsent"

/** Statuses by which a target says that it is overloaded. */
const tooMuch: ReadonlySet<number | null> = new Set([429, 503])

/** What the end of an exchange says about the target's limit. Without a full answer it timed out, was cut off or was not accepted. */
export const endingOf = ({
  errorCode,
  status
}: {
  readonly errorCode: string | null
  readonly status: number | null
}): Ending => (errorCode === null && !tooMuch.has(status) ? "answered" : "overloaded")

/** An exchange that has begun; returned to the limit when it ends. */
export interface Departure {
  readonly at: number
  readonly low: Round | null
  readonly high: Round | null
}

/** The initial limit: a target is trusted with this many, even when they slow it down. */
const first = 50
/** The upper bound of the limit of one destination. */
export const maxConcurrent = 2_000
/** The lower bound of the limit for a target that fails; and, for one round, for a slow target. */
const minFailing = 4
const minSlow = first / 2
/** How many slow rounds pass before a limit below the initial one is tried again: there is little to find out. */
const roundsBetween = 16
/** A target counts as slowed down by the deliveries when it takes this many times its own latency. */
const tolerated = 2
/** By how much a good round raises the limit: at first, and after trouble. */
const quickly = 2
const carefully = 9 / 8
/**
 * By how much a failure lowers the limit. A delivery that began before the last failure fails for the same cause, and lowers the
 * limit by one only.
 */
const perFailure = 8

/**
 * A series of consecutive exchanges and their mean latency. A round is complete when three quarters have ended. Fewer would be
 * only the quick ones, and an exchange that hangs must not hold up the result.
 */
class Round {
  readonly #size: number
  #begun = 0
  #ended = 0
  #answered = 0
  #took = 0
  #underWay = 0

  constructor(size: number) {
    this.#size = Math.ceil(size)
  }

  /** Adds an exchange to the round; false when the round is full. */
  takes(underWay: number): boolean {
    if (this.#begun === this.#size) return false
    this.#begun++
    this.#underWay += underWay
    return true
  }

  /** An exchange of the round has ended; `took` is null when it was not answered. True: the round is complete. */
  ended(took: number | null): boolean {
    this.#ended++
    if (took !== null) {
      this.#answered++
      this.#took += took
    }
    return this.#begun === this.#size && this.#ended * 4 >= this.#size * 3
  }

  /** The mean latency of its answers (ms); null: there is none. */
  get took(): number | null {
    return this.#answered === 0 ? null : this.#took / this.#answered
  }

  /** The mean number of exchanges under way when one of the round began. */
  get underWay(): number {
    return this.#underWay / this.#begun
  }
}

/**
 * How many deliveries of one destination may be under way: as many as its target takes without failing or slowing down.
 *
 * By Little's law, a target of constant latency needs `rate × latency` of them. The limit is raised round by round while it is
 * used up and answers arrive within the target's own latency. A target at its capacity answers later instead of more often. So
 * when a round has taken twice the target's own latency, the limit is halved, and the next round shows the cause. If the round
 * was quicker, the deliveries had slowed the target down. If not, the target has become slower by itself, and the limit is
 * restored. Half of the load that doubles a target's latency still keeps it busy, so the search for the limit costs no
 * throughput.
 *
 * Exchanges are distinguished by how many were under way when they began, because a target processes those first. Pure: the
 * caller passes the time.
 */
export class ConcurrencyLimit {
  readonly #max: number
  readonly #min: number
  /** The operator has set the limit and knows what the target takes: latency is not judged. */
  readonly #isSet: boolean
  #limit: number
  #growth = quickly
  /** The target's own latency (ms), from exchanges that began with few under way; null: not known yet. */
  #own: number | null = null
  #low = new Round(minSlow)
  /** Exchanges that began in the upper half of the limit. */
  #high = new Round(minSlow)
  /**
   * The limit before it was halved, and the longest mean latency that counts as improved: half way between full improvement and
   * none.
   */
  #halved: { readonly from: number; readonly improved: number } | null = null
  /** Slow rounds to ignore. */
  #letPass = 0
  #failedAt = Number.NEGATIVE_INFINITY

  /** `set`: the number that the operator allows; null: the limit is found out. */
  constructor(set: number | null) {
    this.#isSet = set !== null
    this.#max = set ?? maxConcurrent
    this.#min = Math.min(minFailing, this.#max)
    this.#limit = set ?? first
  }

  get value(): number {
    return Math.floor(this.#limit)
  }

  /** An exchange begins at `at` (ms); `underWay` exchanges are under way, including this one. */
  begun(at: number, underWay: number): Departure {
    return {
      at,
      low: underWay <= minSlow && this.#low.takes(underWay) ? this.#low : null,
      high: underWay * 2 > this.#limit && underWay <= this.#limit && this.#high.takes(underWay) ? this.#high : null
    }
  }

  /** An exchange has ended at `now`. */
  ended(how: Ending, { at, high, low }: Departure, now: number): void {
    if (how === "overloaded") this.#failed(at, now)
    else if (how === "answered" && (this.#isSet || (this.#limit < first && this.#halved === null))) {
      this.#limit = Math.min(this.#max, this.#limit + 1)
    }
    if (this.#isSet) return
    const took = how === "answered" ? Math.max(0, now - at) : null
    if (low?.ended(took) === true && low === this.#low) {
      if (low.took !== null) this.#own = this.#own === null ? low.took : (this.#own + low.took) / 2
      this.#low = new Round(minSlow)
    }
    if (high?.ended(took) === true && high === this.#high) {
      if (high.took !== null) this.#judge(high.took, high.underWay)
      this.#next()
    }
  }

  /**
   * A target that accepted nothing for a while may accept deliveries again. The limit starts from one; each answer raises it by
   * one, so it doubles within the target's latency.
   */
  restart(): void {
    this.#limit = 1
    this.#growth = quickly
    this.#halved = null
    this.#next()
  }

  #next(): void {
    this.#high = new Round(Math.max(first, this.#limit) / 2)
  }

  #failed(at: number, now: number): void {
    const isEcho = this.#limit > first && at < this.#failedAt
    const cost = isEcho ? 1 : perFailure
    if (!isEcho) this.#failedAt = now
    this.#limit = Math.max(Math.min(this.#min, this.#limit), this.#limit - Math.min(cost, this.#limit / 2))
    this.#growth = carefully
    if (this.#limit > this.#min) return
    // After an outage, a target may behave differently.
    this.#growth = quickly
    this.#own = null
    this.#halved = null
    this.#low = new Round(minSlow)
    this.#next()
  }

  /** Judges a round by the mean latency of its answers and the mean number of exchanges under way. */
  #judge(took: number, underWay: number): void {
    const halved = this.#halved
    this.#halved = null
    if (this.#own === null || took < this.#own)
      this.#own = this.#own === null ? took : this.#own + (took - this.#own) / 8
    if (took <= this.#own * tolerated) {
      this.#limit = Math.min(this.#max, this.#limit * this.#growth)
      return
    }
    this.#growth = carefully
    if (halved !== null && took > halved.improved) {
      this.#own = took
      this.#growth = quickly
      this.#limit = Math.max(this.#limit, halved.from)
      this.#letPass = 0
      return
    }
    const to = Math.max(minSlow, underWay / 2)
    if (to < first && this.#letPass-- > 0) return
    this.#letPass = to < first ? roundsBetween : 0
    this.#halved = { from: this.#limit, improved: (took * (1 + to / underWay)) / 2 }
    this.#limit = Math.min(this.#limit, to)
  }
}
