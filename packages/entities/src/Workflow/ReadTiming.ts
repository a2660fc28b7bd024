/** How long (ms) after a read the next one may gather. */
const gatherMs = 50

/**
 * When a workflow with many runs under way reads more. A read costs as much as several runs, and runs that begin together share
 * their commits. So a read begins when places for all of its runs are free. If runs end slowly, it begins a short time after the last one.
 */
export class ReadTiming {
  readonly #size: number
  #readAt = Number.NEGATIVE_INFINITY

  /** `size`: the runs of one read. */
  constructor(size: number) {
    this.#size = size
  }

  /** How long (ms) the next read waits for more places; 0: it begins now. `free`: the places that are free. */
  waitMs(free: number, now: number): number {
    if (this.isWhole(free)) return 0
    const since = now - this.#readAt
    // The clock may have been set back.
    return since < 0 ? 0 : Math.max(0, gatherMs - since)
  }

  /** Whether all runs of a read have a place. */
  isWhole(free: number): boolean {
    return free >= this.#size
  }

  /** A read begins. */
  reads(now: number): void {
    this.#readAt = now
  }
}
