import type { DeliveryItem } from "./DeliveryItem.ts"

/** The events of one ordering key that are in memory: the first one, and those that were read behind it. */
interface Line {
  /** The event that may start or is under way; null: reserved for an event that is put back. */
  first: DeliveryItem | null
  isUnderWay: boolean
  readonly behind: Array<DeliveryItem>
  /** Whether SQL may have more events of the key. */
  more: boolean
}

/**
 * How the attempt of a key's first event has ended. `over`: the next one may go; `kept`: it is retried and stays first;
 * `unknown`: SQL has to be read.
 */
export type LineEnding = "over" | "kept" | "unknown"

/** The ordering keys to read for a connection. */
export interface LineReads {
  readonly keys: ReadonlyArray<string>
  /** Continue the scan of all keys after this key; null: do not scan. */
  readonly after: string | null
  /** The largest number of keys, and about the largest number of events. */
  readonly most: number
}

/** More keys than these are not remembered one by one: all keys are scanned instead. */
const maxWanted = 10_000

const placeOf = ({ attempts, place }: DeliveryItem): number => (attempts > 0 ? -1 : (place ?? -1))

/**
 * The events of one connection by ordering key (a `Line` each), as far as they are in memory. Only the first event of a key may
 * start; the next one follows when the first is over and recorded. A new event is never appended from its notification, because
 * notifications may be late or lost. The notification names the key, and the key's events are read from SQL, which has everything
 * that was stored before.
 *
 *     wanted key ─► read ─► first | behind ─► first over ─► next first … ─► none left, but more in SQL ─► wanted key
 *
 * While the first event of a key waits for a retry, nothing behind it is in memory. So blocked keys do not fill the window,
 * however many there are.
 */
export class Lines {
  readonly #lines = new Map<string, Line>()
  /** Keys with events behind their first. */
  readonly #long = new Set<Line>()
  readonly #wanted = new Set<string>()
  /** The position of the scan of all keys; null: there is no scan. */
  #after: string | null = null
  /** A wanted key was forgotten during a scan that may have passed it already. */
  #isRoundStale = false
  #roundAt = Number.NEGATIVE_INFINITY
  #behind = 0

  /** Events that wait behind others. */
  get size(): number {
    return this.#behind
  }

  /** Whether there are keys to read. */
  get isWanting(): boolean {
    return this.#wanted.size > 0
  }

  /** Whether a scan of all keys is under way. */
  get isLooking(): boolean {
    return this.#after !== null
  }

  /** Whether no key is in memory or to be read. */
  get isEmpty(): boolean {
    return this.#lines.size === 0 && !this.isWanting && !this.isLooking
  }

  /** Whether the key is in memory. */
  has(key: string): boolean {
    return this.#lines.has(key)
  }

  /** SQL has events of this key that may not be in memory. */
  want(key: string): void {
    const line = this.#lines.get(key)
    if (line !== undefined) line.more = true
    else if (this.#wanted.size < maxWanted) this.#wanted.add(key)
    else this.forgetWanted()
  }

  /** Something has to be read, but it is not known what: all keys are scanned. */
  forgetWanted(): void {
    this.#wanted.clear()
    if (this.#after === null) this.#after = ""
    else this.#isRoundStale = true
  }

  /** Scans all keys, unless the last scan began less than `pauseMs` ago. */
  lookThrough(now: number, pauseMs: number): void {
    if (this.#after !== null || now < this.#roundAt + pauseMs) return
    this.#roundAt = now
    this.#after = ""
  }

  /** The keys to read now, at most `most`. From here on they count as read. */
  takeReads(most: number, mayLook: boolean): LineReads {
    const keys: Array<string> = []
    for (const key of this.#wanted) {
      if (keys.length === most) break
      this.#wanted.delete(key)
      const line = this.#lines.get(key)
      if (line === undefined) keys.push(key)
      else line.more = true
    }
    return { keys, after: mayLook && keys.length < most ? this.#after : null, most }
  }

  /** The scan has reached this key; null: the end. */
  lookedTo(key: string | null): void {
    if (this.#after === null) return
    this.#after = key ?? (this.#isRoundStale ? "" : null)
    if (key === null) this.#isRoundStale = false
  }

  /** Adds an event of a key. True when it is the first; otherwise it waits. */
  enter(key: string, item: DeliveryItem): boolean {
    const line = this.#lines.get(key)
    if (line === undefined) {
      this.#lines.set(key, { first: item, isUnderWay: false, behind: [], more: false })
      return true
    }
    if (line.first === null) {
      line.first = item
      return true
    }
    let at = line.behind.length
    while (at > 0 && placeOf(line.behind[at - 1]!) > placeOf(item)) at--
    line.behind.splice(at, 0, item)
    this.#behind++
    this.#long.add(line)
    return false
  }

  /** The first event of its key is under way. */
  begin(key: string): void {
    const line = this.#lines.get(key)
    if (line !== undefined) line.isUnderWay = true
  }

  /**
   * The first event of its key is not under way any more. Returns the new first event, or the events that leave memory with it.
   */
  end(
    key: string,
    how: LineEnding
  ): { readonly next: DeliveryItem | null; readonly dropped: ReadonlyArray<DeliveryItem> } {
    const line = this.#lines.get(key)
    if (line === undefined) return nothing
    line.isUnderWay = false
    line.first = null
    if (how === "over") {
      const next = line.behind.shift()
      if (next !== undefined) {
        this.#behind--
        if (line.behind.length === 0) this.#long.delete(line)
        line.first = next
        return { next, dropped: [] }
      }
      this.#lines.delete(key)
      if (line.more) this.want(key)
      return nothing
    }
    const dropped = this.#dropBehind(line)
    line.more = true
    if (how === "unknown") {
      this.#lines.delete(key)
      this.want(key)
    }
    return { next: null, dropped }
  }

  /** The event that stays first was not put back: it is in SQL, and the poller finds it when it is due. */
  leave(key: string): void {
    if (this.#lines.get(key)?.first === null) this.#lines.delete(key)
  }

  /** Removes one of the events that are due last. */
  takeLast(): DeliveryItem | undefined {
    let line: Line | undefined
    for (line of this.#long) break
    if (line === undefined) return undefined
    line.more = true
    this.#behind--
    const item = line.behind.pop()
    if (line.behind.length === 0) this.#long.delete(line)
    return item
  }

  /** A first event that has not begun leaves memory. */
  forget(key: string, item: DeliveryItem): void {
    const line = this.#lines.get(key)
    if (line?.first !== item) return
    this.#lines.delete(key)
    this.want(key)
  }

  /** Removes from memory everything that is not under way; returns the events that waited behind others. */
  clear(): ReadonlyArray<DeliveryItem> {
    const dropped: Array<DeliveryItem> = []
    for (const [key, line] of this.#lines) {
      for (const item of this.#dropBehind(line)) dropped.push(item)
      line.more = true
      if (!line.isUnderWay) this.#lines.delete(key)
    }
    this.#wanted.clear()
    this.#after = null
    this.#roundAt = Number.NEGATIVE_INFINITY
    return dropped
  }

  #dropBehind(line: Line): ReadonlyArray<DeliveryItem> {
    const dropped = line.behind.splice(0)
    this.#behind -= dropped.length
    this.#long.delete(line)
    return dropped
  }
}

const nothing = { next: null, dropped: [] } as const
