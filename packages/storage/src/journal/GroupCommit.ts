import { Effect } from "effect"
import { GatheringTime } from "@tidegate/runtime/GatheringTime"
import { passed } from "@tidegate/runtime/TestSignal"

/**
 * Group commit: items that arrive while a commit is under way go into the next commit. There is no fixed window. With little
 * load an item is committed alone and at once; under load the batches grow by themselves.
 *
 * While batches are small, commits run concurrently, so that a caller waits only for its own commit. When batches grow or
 * commits become slow, a further commit starts only when enough items wait to fill it. So load lowers the number of statements
 * for each item.
 *
 * If several processes share the load of a database, commits are slow and small: each process has a few senders, which send
 * again right after their commit and miss the next one. Therefore the next commit waits for as long as a commit takes.
 */
export interface GroupCommitOptions<Item> {
  /** Writes a batch and answers every item of it. It must not fail. */
  readonly commit: (items: ReadonlyArray<Item>) => Effect.Effect<void>
  /** The largest number of concurrent commits. */
  readonly concurrency: number
  readonly maxItems: number
  /** Called after each commit with its number of items, its bytes, and its duration. */
  readonly committed: (items: number, bytes: number, seconds: number) => void
  readonly maxBytes: number
  readonly sizeOf: (item: Item) => number
  /** Runs a commit in the owner's context. */
  readonly run: (commit: Effect.Effect<void>) => void
  /** Under load, a further commit starts when this many items wait, and it does not wait for more. */
  readonly parallelFrom: number
}

/** A smaller batch does not count as load. */
const smallBatch = 8
/** A commit that takes this many times as long as the fastest one is slow. A factor of two is usual even without other load. */
const slowFrom = 2
/** For this time (ms) after a commit, commits count as recent. */
const recentMs = 250
/** After a smaller batch the next commit does not wait: too few items would arrive. */
const worthHolding = 4

export class GroupCommit<Item> {
  readonly #options: GroupCommitOptions<Item>
  #waiting: Array<Item> = []
  readonly #gathering = new GatheringTime()
  #scheduled = false
  /** The timer that delays the next commit. */
  #held: NodeJS.Timeout | null = null
  #lastBatch = 0
  /** Commits under way. */
  #running = 0
  /** Items that are not answered yet. */
  pendingItems = 0
  /** Their bytes. */
  pendingBytes = 0
  #endedAt = Number.NEGATIVE_INFINITY
  /** The number of commits, and of the items in them: statements per item is an important metric. */
  commits = 0
  items = 0

  constructor(options: GroupCommitOptions<Item>) {
    this.#options = options
  }

  add(item: Item): void {
    this.pendingItems++
    this.pendingBytes += this.#options.sizeOf(item)
    this.#waiting.push(item)
    this.#schedule()
  }

  /** Whether commits are slower than without other load, and some are under way or recent. */
  get isSlow(): boolean {
    return this.#gathering.timesSlower > slowFrom && (this.#running > 0 || performance.now() - this.#endedAt < recentMs)
  }

  #schedule(): void {
    const { concurrency, parallelFrom } = this.#options
    if (this.#scheduled || this.#running === concurrency) return
    const held = this.#waiting.length < parallelFrom ? this.#holding : 0
    if (held > 0) {
      if (this.#running === 0) this.#held ??= setTimeout(() => this.#soon(), held)
    } else this.#soon()
  }

  /** The delay (ms) of the next commit. */
  get #holding(): number {
    return this.#lastBatch < worthHolding ? 0 : this.#gathering.ms
  }

  /** Starts after the event loop has read what is readable now, so that this shares the commit. */
  #soon(): void {
    if (this.#held !== null) clearTimeout(this.#held)
    this.#held = null
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#start()
    })
  }

  #start(): void {
    const { concurrency, parallelFrom } = this.#options
    while (this.#waiting.length > 0 && this.#running < concurrency) {
      const isLoaded = this.#lastBatch >= smallBatch || this.#holding > 0
      if (this.#running > 0 && isLoaded && this.#waiting.length < parallelFrom) return
      const batch = this.#take()
      this.#lastBatch = batch.length
      this.#running++
      const startedAt = performance.now()
      this.commits++
      this.items += batch.length
      this.#options.run(
        Effect.ensuring(
          this.#options.commit(batch),
          Effect.sync(() => {
            let bytes = 0
            for (const item of batch) bytes += this.#options.sizeOf(item)
            this.pendingBytes -= bytes
            this.pendingItems -= batch.length
            const now = performance.now()
            this.#gathering.took(now - startedAt, now)
            this.#endedAt = now
            this.#options.committed(batch.length, bytes, (now - startedAt) / 1_000)
            this.#running--
            passed("commit")
            if (this.#waiting.length > 0) this.#schedule()
          })
        )
      )
    }
  }

  #take(): ReadonlyArray<Item> {
    const { maxItems, maxBytes, sizeOf } = this.#options
    let bytes = 0
    let count = 0
    while (count < this.#waiting.length && count < maxItems) {
      bytes += sizeOf(this.#waiting[count]!)
      if (count > 0 && bytes > maxBytes) break
      count++
    }
    if (count === this.#waiting.length) {
      const batch = this.#waiting
      this.#waiting = []
      return batch
    }
    return this.#waiting.splice(0, count)
  }
}
