/**
 * How an exchange with a target ended: `answered`, whatever it said; `overloaded`: it timed out, was cut off or not taken, or the
 * target said that it is too much; `unsent`: the target never saw it, which tells nothing of it.
 */
export type Ending = "answered" | "overloaded" | "unsent"

/** Statuses by which a target says that it is too much for it. */
const tooMuch: ReadonlySet<number | null> = new Set([429, 503])

/** What the end of an exchange tells of how many its target takes. No full answer: it timed out, was cut off or not taken. */
export const endingOf = ({
  errorCode,
  status
}: {
  readonly errorCode: string | null
  readonly status: number | null
}): Ending => (errorCode === null && !tooMuch.has(status) ? "answered" : "overloaded")

/** An exchange that has begun, to be given back when it ends. */
export interface Departure {
  readonly at: number
  readonly low: Round | null
  readonly high: Round | null
}

/** Where it begins: so many, a target is trusted with, also one that they slow down. */
const first = 50
/** As many as one destination ever has on the wire. */
export const maxConcurrent = 2_000
/** As few as one that fails still gets; and as one that is slow, for a round. */
const minFailing = 4
const minSlow = first / 2
/** So many slow rounds are let pass before a limit below the first is tried again: there is little to find out. */
const roundsBetween = 16
/** How many times its own latency a target may take before it counts as slowed down by the deliveries. */
const tolerated = 2
/** By how much a round that went well raises the limit: at first, and once trouble has been met. */
const quickly = 2
const carefully = 9 / 8
/** What a failure takes away. Of many, one that began before the last one failed has the same cause, and takes its own place only. */
const perFailure = 8

/**
 * Exchanges that began in turn, and what they took. Told when three quarters have ended: those that end first would always look
 * quick, and one that hangs must not hold up what the others tell.
 */
class Round {
  readonly #size: number
  #begun = 0
  #ended = 0
  #answered = 0
  #took = 0
  #places = 0

  constructor(size: number) {
    this.#size = Math.ceil(size)
  }

  /** Whether an exchange is one of it. */
  takes(place: number): boolean {
    if (this.#begun === this.#size) return false
    this.#begun++
    this.#places += place
    return true
  }

  /** One of it has ended; `took`: null when it was not answered. True: the round is told. */
  ended(took: number | null): boolean {
    this.#ended++
    if (took !== null) {
      this.#answered++
      this.#took += took
    }
    return this.#begun === this.#size && this.#ended * 4 >= this.#size * 3
  }

  /** Mean of its answers (ms); null: there is none. */
  get took(): number | null {
    return this.#answered === 0 ? null : this.#took / this.#answered
  }

  /** Mean of how many were on the wire when one of it began. */
  get place(): number {
    return this.#places / this.#begun
  }
}

/**
 * How many deliveries one destination may have on the wire: as many as its target takes without failing or slowing down.
 *
 * By Little's law, a target of constant latency needs `rate × latency` of them: the limit is raised round by round while it is in use and
 * answers come in the target's own time. A target that already does all it can gives later answers instead of more. So when a round has
 * taken twice the target's own time, the limit is halved, and the next round tells why: if it was quicker, the deliveries were what
 * slowed the target down; if not, it has become slower by itself, and gets back what it had. Half of what doubles a target's time still
 * keeps it busy, so that looking for the limit costs no throughput.
 *
 * Exchanges are told apart by their place, the number on the wire when they began, because what waits in a target waits behind those.
 * Pure: whoever holds it tells the time.
 */
export class ConcurrencyLimit {
  readonly #most: number
  readonly #least: number
  /** Set by the operator, who knows what the target takes: latency is not judged. */
  readonly #isSet: boolean
  #limit: number
  #growth = quickly
  /** What the target takes by itself (ms), from exchanges that began with few on the wire; null: not known yet. */
  #own: number | null = null
  #low = new Round(minSlow)
  /** Exchanges that began in the upper half of the limit. */
  #high = new Round(minSlow)
  /** The limit before it was halved, and what a round takes at the most if that helps: half way between fully and not at all. */
  #halved: { readonly from: number; readonly improved: number } | null = null
  /** Slow rounds to let pass. */
  #letPass = 0
  #failedAt = Number.NEGATIVE_INFINITY

  /** `set`: the number that the operator allows; null: it is found out. */
  constructor(set: number | null) {
    this.#isSet = set !== null
    this.#most = set ?? maxConcurrent
    this.#least = Math.min(minFailing, this.#most)
    this.#limit = set ?? first
  }

  get value(): number {
    return Math.floor(this.#limit)
  }

  /** An exchange begins at `at` (ms), with `place` on the wire, itself included. */
  begun(at: number, place: number): Departure {
    return {
      at,
      low: place <= minSlow && this.#low.takes(place) ? this.#low : null,
      high: place * 2 > this.#limit && place <= this.#limit && this.#high.takes(place) ? this.#high : null
    }
  }

  /** An exchange has ended `now`. */
  ended(how: Ending, { at, high, low }: Departure, now: number): void {
    if (how === "overloaded") this.#failed(at, now)
    else if (how === "answered" && (this.#isSet || (this.#limit < first && this.#halved === null))) {
      this.#limit = Math.min(this.#most, this.#limit + 1)
    }
    if (this.#isSet) return
    const took = how === "answered" ? Math.max(0, now - at) : null
    if (low?.ended(took) === true && low === this.#low) {
      if (low.took !== null) this.#own = this.#own === null ? low.took : (this.#own + low.took) / 2
      this.#low = new Round(minSlow)
    }
    if (high?.ended(took) === true && high === this.#high) {
      if (high.took !== null) this.#judge(high.took, high.place)
      this.#next()
    }
  }

  /** A target that took nothing for a while takes something again: how many is found out from one on, twice as many with each answer's time. */
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
    this.#limit = Math.max(Math.min(this.#least, this.#limit), this.#limit - Math.min(cost, this.#limit / 2))
    this.#growth = carefully
    if (this.#limit > this.#least) return
    // What was true of a target that is gone need not be when it is back.
    this.#growth = quickly
    this.#own = null
    this.#halved = null
    this.#low = new Round(minSlow)
    this.#next()
  }

  /** A round: what answers took, and how many were on the wire, in the mean. */
  #judge(took: number, place: number): void {
    const halved = this.#halved
    this.#halved = null
    if (this.#own === null || took < this.#own)
      this.#own = this.#own === null ? took : this.#own + (took - this.#own) / 8
    if (took <= this.#own * tolerated) {
      this.#limit = Math.min(this.#most, this.#limit * this.#growth)
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
    const to = Math.max(minSlow, place / 2)
    if (to < first && this.#letPass-- > 0) return
    this.#letPass = to < first ? roundsBetween : 0
    this.#halved = { from: this.#limit, improved: (took * (1 + to / place)) / 2 }
    this.#limit = Math.min(this.#limit, to)
  }
}
