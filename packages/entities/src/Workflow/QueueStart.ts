/** How often (ms) a queue that is read all the time is read from its beginning. */
const wholeEveryMs = 1_000
/** A run may be stored so long (ms) after it was due, and is still found at once. */
const lateMs = 1_000

/**
 * Where the reads of a workflow's queue begin. The rows of ended runs stay in the index until the database removes them, which it
 * does once a minute at best. A read from the beginning passes all of them: under load this costs more than the rest of the read.
 * So a read begins where the one before has ended, minus some time for runs that are stored late. Runs that are even later, or
 * that come back to the queue, are found by the next read from the beginning: after a second, when the poller or a command wakes
 * the workflow, or when there is nothing else to do.
 */
export class QueueStart {
  #wholeAt = Number.NEGATIVE_INFINITY
  /** The latest time at which a run that was read was due (Unix ms). */
  #due = 0

  /** From when on due runs are read now (Unix ms); 0: from the beginning. */
  next(now: number): number {
    const since = now - this.#wholeAt
    // The clock may have been set back.
    if (since >= 0 && since < wholeEveryMs) return Math.max(0, this.#due - lateMs)
    this.#wholeAt = now
    return 0
  }

  /** Runs were read; `due`: when the last of them was due (Unix ms). */
  read(due: number): void {
    this.#due = due
  }

  /** The next read is from the beginning. */
  reset(): void {
    this.#wholeAt = Number.NEGATIVE_INFINITY
  }
}
