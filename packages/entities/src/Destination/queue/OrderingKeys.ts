import type { DeliveryItem } from "./DeliveryItem.ts"

/** The events of one ordering key that are in memory: the first one, and those that were read behind it. */
interface KeyEvents {
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
export type KeyEnding = "over" | "kept" | "unknown"

/** The ordering keys to read for a connection. */
export interface KeyReads {
  readonly keys: ReadonlyArray<string>
  /** Continue the scan of all keys after this key; null: do not scan. */
  readonly after: string | null
  /** The largest number of keys. */
  readonly max: number
  /** The largest number of events of each of `keys`. */
  readonly perKey: number
}

/** Events of a key that are read even if there is no room for those behind the first: with one more it is known whether the key has more. */
const minPerKey = 2
/** More keys than these are not remembered one by one: all keys are scanned instead. */
const maxWanted = 10_000

const positionOf = ({ attempts, place }: DeliveryItem): number => (attempts > 0 ? -1 : (place ?? -1))

/**
 * The events of one connection by ordering key (`KeyEvents` each), as far as they are in memory. Only the first event of a key may
 * start; the next one follows when the first is over and recorded. A new event is never appended from its notification, because
 * notifications may be late or lost. The notification names the key, and the key's events are read from SQL, which has everything
 * that was stored before.
 *
 *     wanted key ─► read ─► first | behind ─► first over ─► next first … ─► none left, but more in SQL ─► wanted key
 *
 * While the first event of a key waits for a retry, nothing behind it is in memory. So blocked keys do not fill the window,
 * however many there are.
 */
export class OrderingKeys {
  readonly #keys = new Map<string, KeyEvents>()
  /** Keys with events behind their first. */
  readonly #long = new Set<KeyEvents>()
  readonly #wanted = new Set<string>()
  /** The position of the scan of all keys; null: there is no scan. */
  #after: string | null = null
  /** A wanted key was forgotten during a scan that may have passed it already. */
  #isScanStale = false
  #scannedAt = Number.NEGATIVE_INFINITY
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
  get isScanning(): boolean {
    return this.#after !== null
  }

  /** Whether no key is in memory or to be read. */
  get isEmpty(): boolean {
    return this.#keys.size === 0 && !this.isWanting && !this.isScanning
  }

  /** Whether the key is in memory. */
  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** Whether the first event of the key waits for another attempt. */
  isBlocked(key: string): boolean {
    const events = this.#keys.get(key)
    return events !== undefined && !events.isUnderWay && (events.first === null || events.first.attempts > 0)
  }

  /** SQL has events of this key that may not be in memory. */
  want(key: string): void {
    const events = this.#keys.get(key)
    if (events !== undefined) events.more = true
    else if (this.#wanted.size < maxWanted) this.#wanted.add(key)
    else this.forgetWanted()
  }

  /** Something has to be read, but it is not known what: all keys are scanned. */
  forgetWanted(): void {
    this.#wanted.clear()
    if (this.#after === null) this.#after = ""
    else this.#isScanStale = true
  }

  /** Scans all keys, unless the last scan began less than `pauseMs` ago. */
  scan(now: number, pauseMs: number): void {
    if (this.#after !== null || now < this.#scannedAt + pauseMs) return
    this.#scannedAt = now
    this.#after = ""
  }

  /** The keys to read now, at most `max`. From here on they count as read. `spare`: the room for events behind the first ones. */
  takeReads(max: number, spare: number, mayScan: boolean): KeyReads {
    const keys: Array<string> = []
    for (const key of this.#wanted) {
      if (keys.length === max) break
      this.#wanted.delete(key)
      const events = this.#keys.get(key)
      if (events === undefined) keys.push(key)
      else events.more = true
    }
    const perKey = minPerKey + Math.floor(spare / Math.max(1, keys.length))
    return { keys, after: mayScan && keys.length < max ? this.#after : null, max, perKey }
  }

  /** The scan has reached this key; null: the end. */
  scannedTo(key: string | null): void {
    if (this.#after === null) return
    this.#after = key ?? (this.#isScanStale ? "" : null)
    if (key === null) this.#isScanStale = false
  }

  /** Adds an event of a key. True when it is the first; otherwise it waits. */
  enter(key: string, item: DeliveryItem): boolean {
    const events = this.#keys.get(key)
    if (events === undefined) {
      this.#keys.set(key, { first: item, isUnderWay: false, behind: [], more: false })
      return true
    }
    if (events.first === null) {
      events.first = item
      return true
    }
    let at = events.behind.length
    while (at > 0 && positionOf(events.behind[at - 1]!) > positionOf(item)) at--
    events.behind.splice(at, 0, item)
    this.#behind++
    this.#long.add(events)
    return false
  }

  /** The first event of its key is under way. */
  begin(key: string): void {
    const events = this.#keys.get(key)
    if (events !== undefined) events.isUnderWay = true
  }

  /** The first event of its key goes on as this one. */
  replace(key: string, item: DeliveryItem): void {
    const events = this.#keys.get(key)
    if (events?.first?.eventId === item.eventId) events.first = item
  }

  /**
   * The first event of its key is not under way any more. Returns the new first event, or the events that leave memory with it.
   */
  end(
    key: string,
    how: KeyEnding
  ): { readonly next: DeliveryItem | null; readonly dropped: ReadonlyArray<DeliveryItem> } {
    const events = this.#keys.get(key)
    if (events === undefined) return nothing
    events.isUnderWay = false
    events.first = null
    if (how === "over") {
      const next = events.behind.shift()
      if (next !== undefined) {
        this.#behind--
        if (events.behind.length === 0) this.#long.delete(events)
        events.first = next
        return { next, dropped: [] }
      }
      this.#keys.delete(key)
      if (events.more) this.want(key)
      return nothing
    }
    const dropped = this.#dropBehind(events)
    events.more = true
    if (how === "unknown") {
      this.#keys.delete(key)
      this.want(key)
    }
    return { next: null, dropped }
  }

  /** The event that stays first was not put back: it is in SQL, and the poller finds it when it is due. */
  leave(key: string): void {
    if (this.#keys.get(key)?.first === null) this.#keys.delete(key)
  }

  /** Removes one of the events that are due last. */
  takeLast(): DeliveryItem | undefined {
    let events: KeyEvents | undefined
    for (events of this.#long) break
    if (events === undefined) return undefined
    events.more = true
    this.#behind--
    const item = events.behind.pop()
    if (events.behind.length === 0) this.#long.delete(events)
    return item
  }

  /** A first event that has not begun leaves memory. */
  forget(key: string, item: DeliveryItem): void {
    const events = this.#keys.get(key)
    if (events?.first !== item) return
    this.#keys.delete(key)
    this.want(key)
  }

  /** Removes from memory everything that is not under way; returns the events that waited behind others. */
  clear(): ReadonlyArray<DeliveryItem> {
    const dropped: Array<DeliveryItem> = []
    for (const [key, events] of this.#keys) {
      for (const item of this.#dropBehind(events)) dropped.push(item)
      events.more = true
      if (!events.isUnderWay) this.#keys.delete(key)
    }
    this.#wanted.clear()
    this.#after = null
    this.#scannedAt = Number.NEGATIVE_INFINITY
    return dropped
  }

  #dropBehind(events: KeyEvents): ReadonlyArray<DeliveryItem> {
    const dropped = events.behind.splice(0)
    this.#behind -= dropped.length
    this.#long.delete(events)
    return dropped
  }
}

const nothing = { next: null, dropped: [] } as const
