import { Effect } from "effect"
import { FairQueue } from "@tidegate/runtime/FairQueue"
import { GatheringTime } from "@tidegate/runtime/GatheringTime"
import { passed } from "@tidegate/runtime/TestSignal"

/**
 * Group commit: items that arrive while a commit is under way go into the next commit. For items that somebody waits for there is
 * no fixed window. With little load such an item is committed alone and at once; under load the batches grow by themselves.
 *
 * An item that nobody waits for gathers others for a fixed time (`patienceMs`), because a commit costs far more than an item in it.
 *
 * When more items wait than a commit may hold, their keys (sources, destinations) take turns: see `FairQueue.ts`.
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
  /** The largest work of a commit: rows. */
  readonly maxRows: number
  /** The rows of an item; 1 by default. */
  readonly rowsOf?: (item: Item) => number
  /** Whose item it is. By default all items have the same key. */
  readonly keyOf?: (item: Item) => string
  /** Called after each commit with its number of items, its bytes, and its duration. */
  readonly committed: (items: number, bytes: number, seconds: number) => void
  readonly maxBytes: number
  readonly sizeOf: (item: Item) => number
  /** Runs a commit in the owner's context. */
  readonly run: (commit: Effect.Effect<void>) => void
  /** Under load, a further commit starts when this many items wait, and it does not wait for more. */
  readonly parallelFrom: number
  /** How long (ms) items that nobody waits for may gather. 0 by default. */
  readonly patienceMs?: number
}

/** Items, and their bytes. */
export interface Load {
  readonly items: number
  readonly bytes: number
}

const nothing: Load = { items: 0, bytes: 0 }

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
  readonly #waiting = new FairQueue<Item>()
  readonly #loads = new Map<string, { items: number; bytes: number }>()
  readonly #gathering = new GatheringTime()
  #scheduled = false
  /** The timer that delays the next commit, and its end (of `performance.now()`). */
  #held: NodeJS.Timeout | null = null
  #heldUntil = 0
  /** Whether somebody waits for one of the waiting items. */
  #isAwaited = false
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

  /** `isAwaited`: somebody waits for its commit. */
  add(item: Item, isAwaited = true): void {
    const { keyOf, rowsOf, sizeOf } = this.#options
    const key = keyOf?.(item) ?? ""
    const bytes = sizeOf(item)
    this.#count(key, 1, bytes)
    this.#waiting.add(key, item, { bytes, work: rowsOf?.(item) ?? 1 })
    this.#isAwaited ||= isAwaited
    this.#schedule()
  }

  /** The load of a key in this queue: items that wait, or are in a commit. */
  loadOf(key: string): Load {
    return this.#loads.get(key) ?? nothing
  }

  #count(key: string, items: number, bytes: number): void {
    this.pendingItems += items
    this.pendingBytes += bytes
    const load = this.#loads.get(key)
    if (load === undefined) {
      this.#loads.set(key, { items, bytes })
      return
    }
    load.items += items
    load.bytes += bytes
    if (load.items === 0) this.#loads.delete(key)
  }

  /** Whether commits are slower than without other load, and some are under way or recent. */
  get isSlow(): boolean {
    return this.#gathering.timesSlower > slowFrom && (this.#running > 0 || performance.now() - this.#endedAt < recentMs)
  }

  #schedule(): void {
    const { concurrency, parallelFrom } = this.#options
    if (this.#scheduled || this.#running === concurrency) return
    const held = this.#waiting.length < parallelFrom ? Math.max(this.#holding, this.#patience) : 0
    if (held === 0) this.#soon()
    else if (this.#running === 0) this.#hold(held)
  }

  /** Delays the next commit for at most so long (ms). */
  #hold(held: number): void {
    const until = performance.now() + held
    if (this.#held !== null) {
      if (this.#heldUntil <= until) return
      clearTimeout(this.#held)
    }
    this.#heldUntil = until
    this.#held = setTimeout(() => this.#soon(), held)
  }

  /** How long (ms) the waiting items may gather. */
  get #patience(): number {
    return this.#isAwaited ? 0 : (this.#options.patienceMs ?? 0)
  }

  /** The delay (ms) of the next commit while the database is busy. */
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
    const { concurrency, keyOf, maxBytes, maxRows, parallelFrom, sizeOf } = this.#options
    while (this.#waiting.length > 0 && this.#running < concurrency) {
      const isLoaded = this.#lastBatch >= smallBatch || this.#holding > 0
      if (this.#running > 0 && isLoaded && this.#waiting.length < parallelFrom) return
      const batch = this.#waiting.take({ bytes: maxBytes, work: maxRows })
      if (this.#waiting.length === 0) this.#isAwaited = false
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
            for (const item of batch) {
              const size = sizeOf(item)
              bytes += size
              this.#count(keyOf?.(item) ?? "", -1, -size)
            }
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
}
