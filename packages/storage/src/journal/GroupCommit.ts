import { Effect } from "effect"
import { GatheringTime } from "@tidegate/runtime/GatheringTime"
import { passed } from "@tidegate/runtime/TestSignal"

/**
 * Group commit: what callers hand in gathers while a commit is under way and goes into the next one. There is no fixed
 * window: at low load an item is committed alone and at once, under load the batches grow by themselves.
 *
 * While batches are small, commits run beside each other, so that nobody waits for a commit that is not his own; once they
 * grow, or commits become slow, another one starts only when enough has gathered to fill it, so that load lowers the statements per item.
 *
 * Where several processes share the load of a database, commits are slow and small: each process has a few senders, who come again right after their
 * commit, too late for the next one. So before the next one it gathers for as long as a commit takes.
 */
export interface GroupCommitOptions<Item> {
  /** Writes a batch and tells every item of it what became of it. Must not fail, and must answer every item. */
  readonly commit: (items: ReadonlyArray<Item>) => Effect.Effect<void>
  /** Commits that may be under way at the same time. */
  readonly lanes: number
  readonly maxItems: number
  /** Told of each commit that is over: what was in it, in items and bytes, and how long it took. */
  readonly committed: (items: number, bytes: number, seconds: number) => void
  readonly maxBytes: number
  readonly sizeOf: (item: Item) => number
  /** Runs a commit; supplied by the owner so that it runs in the owner's context. */
  readonly run: (commit: Effect.Effect<void>) => void
  /** Under load, another commit starts beside one under way when this many wait for it, and none is held back for more. */
  readonly parallelFrom: number
}

/** A batch of fewer items than this is no sign of load. */
const smallBatch = 8
/** So many times as long as the quickest commit is slow: two is usual without anything beside it. */
const slowFrom = 2
/** How long (ms) after a commit there still are commits. */
const recentMs = 250
/** After a batch of fewer items nobody waits for company: too little would come. */
const worthHolding = 4

export class GroupCommit<Item> {
  readonly #options: GroupCommitOptions<Item>
  #waiting: Array<Item> = []
  readonly #gathering = new GatheringTime()
  #scheduled = false
  /** Ends the time for which the next commit is held back. */
  #held: NodeJS.Timeout | null = null
  #lastBatch = 0
  /** Commits under way. */
  #running = 0
  /** Items handed in and not yet answered. */
  pendingItems = 0
  /** Their bytes. */
  pendingBytes = 0
  #endedAt = Number.NEGATIVE_INFINITY
  /** Commits so far, and the items in them: statements per item is a figure worth watching. */
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

  /** Whether commits take longer than they do with nothing beside them, and there are any: under way, or lately. */
  get isSlow(): boolean {
    return this.#gathering.timesSlower > slowFrom && (this.#running > 0 || performance.now() - this.#endedAt < recentMs)
  }

  #schedule(): void {
    const { lanes, parallelFrom } = this.#options
    if (this.#scheduled || this.#running === lanes) return
    const held = this.#waiting.length < parallelFrom ? this.#holding : 0
    if (held > 0) {
      if (this.#running === 0) this.#held ??= setTimeout(() => this.#soon(), held)
    } else this.#soon()
  }

  /** For how long (ms) the next commit is held back. */
  get #holding(): number {
    return this.#lastBatch < worthHolding ? 0 : this.#gathering.ms
  }

  /** After what is readable in this turn of the event loop has been read, so that it shares the commit. */
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
    const { lanes, parallelFrom } = this.#options
    while (this.#waiting.length > 0 && this.#running < lanes) {
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
