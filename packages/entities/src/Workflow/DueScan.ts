/** How much earlier (ms) than the runs that a read found a run may come due that is stored after that read. */
const slackMs = 2_000
/** How often (ms) a read begins at the start of the queue. */
const wholeEveryMs = 1_000

/**
 * Where reads of a workflow's queue begin. Rows of ended runs stay in the index until PostgreSQL vacuums, at the start of the
 * queue, and a read that begins there passes all of them: after 50,000 runs it takes 2 ms instead of 0.1. So a read begins shortly
 * before the first run that the last one found. A run that was stored late, with an earlier time, is found within a second: then
 * a read begins at the start again.
 */
export class DueScan {
  #from = 0
  #wholeAt = Number.NEGATIVE_INFINITY

  /** The due time (Unix ms) at which the next read begins; 0: at the start of the queue. */
  from(now: number): number {
    return Math.abs(now - this.#wholeAt) >= wholeEveryMs ? 0 : this.#from
  }

  /** The next read begins at the start: something has changed besides new runs. */
  restart(): void {
    this.#wholeAt = Number.NEGATIVE_INFINITY
  }

  /**
   * Records a read that began at `from`. `first`: when the first run that it found was due; null: it found none. Returns when (Unix
   * ms) the queue has to be read from its start again; null: it was.
   */
  read(from: number, now: number, first: number | null): number | null {
    this.#from = Math.max(0, Math.min(first ?? now, now) - slackMs)
    if (from > 0) return this.#wholeAt + wholeEveryMs
    this.#wholeAt = now
    return null
  }
}
