/** Batches that must be slow in a row: a single one (a checkpoint, a garbage collection) is no sign of load. */
const batches = 4
/** A batch is slow if it takes this many times as long as the fastest one. */
const slow = 4
/** Longest gathering time (ms). */
const maxMs = 16
/** After this time (ms) the fastest batch is determined again: if the database has become slower for good, it does not count as loaded for ever. */
const memoryMs = 600_000

/**
 * How long to gather before the next batch. While batches take about as long as the fastest one did, the answer is 0: nothing waits. When
 * they take several times as long, the server is busy, with this process's batches or with others'. Then small batches are the most expensive,
 * and gathering for as long as a batch takes makes each one larger.
 */
export class GatheringTime {
  readonly #last = new Float64Array(batches)
  #count = 0
  /** Milliseconds; 0: begin at once. */
  ms = 0
  /** Ratio of the recent batches' time to the fastest one's: the smallest of them. */
  timesSlower = 1
  #quickest = Number.POSITIVE_INFINITY
  #quickestSince = Number.POSITIVE_INFINITY
  #since = 0

  /** Records that a batch took `ms` milliseconds and ended at `now`. */
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
