/** So many batches must have been slow: one alone (a checkpoint, a collection) is no sign of load. */
const batches = 4
/** So many times as long as the quickest is slow. */
const slow = 4
/** Nobody waits longer than this for company (ms). */
const maxMs = 16
/** After so long (ms) the quickest is the quickest since: a database that has moved further away is not loaded for ever. */
const memoryMs = 600_000

/**
 * For how long it pays to gather before the next batch. As long as batches take about as long as the quickest has, not at all: nobody waits for
 * company. When they take several times as long, whoever works them off is busy, with this process' batches or with others'; then small
 * batches cost everybody the most, and gathering for as long as a batch takes makes each of them larger.
 */
export class GatheringTime {
  readonly #last = new Float64Array(batches)
  #count = 0
  /** Milliseconds; 0: begin at once. */
  ms = 0
  /** How many times as long as the quickest all of the last batches have taken. */
  timesSlower = 1
  #quickest = Number.POSITIVE_INFINITY
  #quickestSince = Number.POSITIVE_INFINITY
  #since = 0

  /** A batch has taken so long (ms), and is over at `now`. */
  took(ms: number, now: number): void {
    this.#last[this.#count % batches] = ms
    this.#count++
    if (now - this.#since > memoryMs) {
      this.#since = now
      this.#quickest = this.#quickestSince
      this.#quickestSince = Number.POSITIVE_INFINITY
    }
    this.#quickest = Math.min(this.#quickest, ms)
    this.#quickestSince = Math.min(this.#quickestSince, ms)
    const recent = Math.min(...this.#last)
    this.timesSlower = recent / this.#quickest
    this.ms = this.timesSlower > slow ? Math.min(recent, maxMs) : 0
  }
}
