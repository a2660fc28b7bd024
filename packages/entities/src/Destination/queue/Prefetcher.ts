import type { ConnectionQueue } from "./ConnectionQueue.ts"
import type { DeliveryWindow } from "./DeliveryWindow.ts"
import type { Intake } from "./Intake.ts"
import type { KeyReads } from "./OrderingKeys.ts"
import type { Prefetched } from "./PrefetchRead.ts"
import type { QueueHost, QueueReads } from "./QueueHost.ts"
import type { QueueSettings } from "./QueueSettings.ts"

/** The smallest number of ordering keys to read at once. */
const minKeys = 64
/**
 * Room in the window that events behind the first of their ordering key leave to first ones. Otherwise some keys would fill it with events that
 * wait, and others could not go on.
 */
const roomForFirst = 256
/** The pause after a prefetch whose rows did not fit (ms). */
const pauseMs = 50
/**
 * The pause between two scans of all ordering keys of a connection (ms). A scan finds events whose notification was lost, and
 * retries that come due.
 */
const scanPauseMs = 2_000

/**
 * Decides when to read events from SQL into the window, and which. The host reads them (`PrefetchRead.ts`), one read at a time. A
 * read begins when something may be due that is not in memory, when the window runs short, and when ordering keys are to be read.
 */
export class Prefetcher {
  readonly #host: QueueHost
  readonly #settings: QueueSettings
  readonly #window: DeliveryWindow
  readonly #intake: Intake
  #isReading = false
  /** Something may be due that is not in memory: due rows are read, and all ordering keys are scanned. */
  #isWanted = false
  /** The earliest times of the next read: of due rows and scans, and of single ordering keys. */
  #rowsAt = 0
  #keysAt = 0
  /** What the current read reads: whether it reads due rows (or ordering keys only), and which ordering keys. */
  #readsDue = false
  #keyReads: ReadonlyMap<string, KeyReads> = new Map()
  /** Whether it continues the scans of all ordering keys. */
  #mayScan = false
  /** The result of the current read may be older than the removal of some rows. */
  #isStale = false
  #cancelAt = 0

  constructor(host: QueueHost, settings: QueueSettings, window: DeliveryWindow, intake: Intake) {
    this.#host = host
    this.#settings = settings
    this.#window = window
    this.#intake = intake
  }

  /** Whether it reads, or is about to. */
  get isBusy(): boolean {
    return this.#isReading || this.#isWanted
  }

  /** Something may be due that is not in memory. */
  want(): void {
    this.#isWanted = true
  }

  /** The same, and it may be of any ordering key. */
  wantAll(now: number): void {
    this.#isWanted = true
    const mayCancel = now >= this.#cancelAt
    for (const [connectionId, { order }] of this.#settings.connections) {
      if (order === undefined) continue
      const state = this.#settings.stateOf(connectionId)
      if (state === "open") this.#window.queueOf(connectionId).keys.scan(now, scanPauseMs)
      // Nothing else would find the events that remain in it: a cancelled connection's rows are not read.
      else if (state === "cancelled" && mayCancel) this.#host.cancel(connectionId)
    }
    if (mayCancel) this.#cancelAt = now + scanPauseMs
  }

  /** Rows were removed from SQL whose events may wait in memory: all waiting events leave memory, and SQL is read again. */
  startOver(): void {
    this.#isStale = this.#isReading
    for (const queue of this.#window.queues.values()) {
      this.#window.evict(queue)
      this.#window.turnAway(queue)
    }
    this.wantAll(this.#host.now())
  }

  /** Nothing is read before this time (Unix ms). */
  pauseUntil(at: number): void {
    this.#rowsAt = this.#keysAt = at
  }

  /**
   * Begins to read if there is a reason. Returns when to call it again (Unix ms); Infinity: after the current read, or after a
   * change. `isTargetReady`: whether the target accepts deliveries. While it does not, a queue that has events need not read more.
   */
  next(now: number, isTargetReady: boolean): number {
    if (this.#isReading) return Number.POSITIVE_INFINITY
    const isForDue = this.#isWanted && (isTargetReady || this.#window.isEmpty)
    const rowsAt = isForDue ? now : this.#runsShort() ? Math.max(now, this.#rowsAt) : Number.POSITIVE_INFINITY
    const at = Math.min(rowsAt, this.#keysDueAt(now))
    if (at > now) return at
    this.#mayScan = this.#isWanted || now >= this.#rowsAt
    this.#isWanted &&= !isForDue
    this.#isReading = true
    this.#readsDue = rowsAt <= now
    if (this.#readsDue) for (const queue of this.#window.queues.values()) queue.missed = false
    this.#host.prefetch()
    return Number.POSITIVE_INFINITY
  }

  /** What the read that has begun shall read; from here on it counts as read. */
  takeReads(): QueueReads {
    const mayScan = this.#mayScan
    const queues = [...this.#window.queues.values()].filter(
      ({ connectionId, keys }) =>
        (keys.isWanting || (mayScan && keys.isScanning)) && this.#settings.isOpenFor(connectionId)
    )
    const { room } = this.#window
    const max = Math.ceil(Math.max(minKeys, room) / queues.length)
    const reads = ({ connectionId, keys }: ConnectionQueue): readonly [string, KeyReads] => {
      // A few may also wait beside a window that is full of other connections' events.
      const spare = Math.max(0, minKeys - keys.size, (room - roomForFirst) / queues.length)
      return [connectionId, keys.takeReads(max, spare, mayScan)]
    }
    this.#keyReads = new Map(queues.map(reads))
    return { due: this.#readsDue, keys: this.#keyReads }
  }

  /** The read has ended. */
  finished({ behind, items, keys }: Prefetched): void {
    this.#isReading = false
    const now = this.#host.now()
    if (this.#isStale) {
      this.#isStale = false
      this.#forgetReads()
      return this.wantAll(now)
    }
    const before = this.#window.waiting
    let fits = true
    if (this.#readsDue) for (const queue of this.#window.queues.values()) queue.behind = queue.missed
    for (const item of items) if (!this.#intake.insertRead(item, now)) fits = false
    for (const connectionId of behind) this.#window.queueOf(connectionId).behind = true
    for (const read of keys) if (!this.#intake.insertByKey(read, now)) fits = false
    let hasSearched = this.#readsDue
    for (const { after } of this.#keyReads.values()) hasSearched ||= after !== null
    if (!fits || (hasSearched && this.#window.waiting <= before)) this.#rowsAt = now + pauseMs
    if (!fits) this.#keysAt = now + pauseMs
  }

  /** SQL could not be read. */
  failed(): void {
    this.#isReading = false
    this.#isWanted = true
    this.#forgetReads()
  }

  #forgetReads(): void {
    for (const connectionId of this.#keyReads.keys()) this.#window.queueOf(connectionId).keys.forgetWanted()
  }

  /** Whether to read due rows: the window is half empty, or a connection queue with rows in SQL is empty in memory. */
  #runsShort(): boolean {
    for (const queue of this.#window.queues.values()) if (queue.behind && this.#hasUseFor(queue)) return true
    return false
  }

  #hasUseFor(queue: ConnectionQueue): boolean {
    return this.#settings.isOpenFor(queue.connectionId) && (queue.size === 0 || this.#window.isHalfEmpty)
  }

  /** When to read events by ordering key. Keys that are known to have rows are not delayed by scans that find nothing. */
  #keysDueAt(now: number): number {
    let at = Number.POSITIVE_INFINITY
    for (const queue of this.#window.queues.values()) {
      const { isScanning, isWanting } = queue.keys
      if (!(isScanning || isWanting) || !this.#hasUseFor(queue)) continue
      at = Math.min(at, Math.max(now, isWanting ? this.#keysAt : this.#rowsAt))
    }
    return at
  }
}
