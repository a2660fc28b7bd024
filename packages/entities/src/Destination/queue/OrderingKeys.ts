import type { DeliveryItem } from "./DeliveryItem.ts"

/** The events of one key that are in memory: its first, and what was read behind it. */
interface Line {
  /** What may start, or is on the wire; null: the place of one that is put back. */
  first: DeliveryItem | null
  isUnderWay: boolean
  readonly behind: Array<DeliveryItem>
  /** Whether SQL may hold more of it. */
  more: boolean
}

/** How the attempt at a line's first event has ended: it is over, it keeps its place, or only SQL knows. */
export type LineEnding = "over" | "kept" | "unknown"

/** What is to be read of a connection's lines. */
export interface LineReads {
  readonly keys: ReadonlyArray<string>
  /** Go on with the line behind this key; null: do not look for others. */
  readonly after: string | null
  /** So many lines at the most, and about so many events. */
  readonly most: number
}

/** More keys than these are not remembered one by one: all lines are looked through instead. */
const maxWanted = 10_000

const placeOf = ({ attempts, place }: DeliveryItem): number => (attempts > 0 ? -1 : (place ?? -1))

/**
 * The lines of one connection, as far as they are in memory. Only the first event of a line is ever startable; the next one follows
 * when it is over and recorded. What comes in is never put behind by what memory knows of a line, because a hint may be late or lost:
 * it names its key, and the line is read from SQL, where everything is that was stored before.
 *
 *     wanted key ─► read ─► first | behind ─► first over ─► next first … ─► none left, but more in SQL ─► wanted key
 *
 * A line whose first waits for a retry has nothing behind it in memory: however many lines are blocked, they fill no window.
 */
export class Lines {
  readonly #lines = new Map<string, Line>()
  /** Lines with something behind their first. */
  readonly #long = new Set<Line>()
  readonly #wanted = new Set<string>()
  /** Where looking through all lines has got to; null: they are not being looked through. */
  #after: string | null = null
  /** Something was forgotten while they were: it may be of a line that they had passed. */
  #isRoundStale = false
  #roundAt = Number.NEGATIVE_INFINITY
  #behind = 0

  /** Events that wait behind others. */
  get size(): number {
    return this.#behind
  }

  /** Whether there are lines that are to be read. */
  get isWanting(): boolean {
    return this.#wanted.size > 0
  }

  /** Whether all lines are being looked through. */
  get isLooking(): boolean {
    return this.#after !== null
  }

  /** Whether nothing is known of any line. */
  get isEmpty(): boolean {
    return this.#lines.size === 0 && !this.isWanting && !this.isLooking
  }

  /** Whether the line is in memory. */
  has(key: string): boolean {
    return this.#lines.has(key)
  }

  /** Something of this key is in SQL that may not be in memory. */
  want(key: string): void {
    const line = this.#lines.get(key)
    if (line !== undefined) line.more = true
    else if (this.#wanted.size < maxWanted) this.#wanted.add(key)
    else this.forgetWanted()
  }

  /** Something is to be read, and nobody knows what: all lines are looked through. */
  forgetWanted(): void {
    this.#wanted.clear()
    if (this.#after === null) this.#after = ""
    else this.#isRoundStale = true
  }

  /** Looks through all lines, unless it did so less than `pauseMs` ago. */
  lookThrough(now: number, pauseMs: number): void {
    if (this.#after !== null || now < this.#roundAt + pauseMs) return
    this.#roundAt = now
    this.#after = ""
  }

  /** What is to be read now, `most` lines at the most. From here on it counts as read. */
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

  /** All lines were looked through up to here; null: to the end. */
  lookedTo(key: string | null): void {
    if (this.#after === null) return
    this.#after = key ?? (this.#isRoundStale ? "" : null)
    if (key === null) this.#isRoundStale = false
  }

  /** An event of a line: true when it is the first, else it waits. */
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

  /** The first of its line is on its way. */
  begin(key: string): void {
    const line = this.#lines.get(key)
    if (line !== undefined) line.isUnderWay = true
  }

  /** The first of its line is not under way any more. Answers the next first, or what leaves memory with it. */
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

  /** Nothing has taken the place that was kept: SQL has it, and the clock brings it back. */
  leave(key: string): void {
    if (this.#lines.get(key)?.first === null) this.#lines.delete(key)
  }

  /** Takes out one of those whose turn is farthest away. */
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

  /** A first that has not begun leaves memory. */
  forget(key: string, item: DeliveryItem): void {
    const line = this.#lines.get(key)
    if (line?.first !== item) return
    this.#lines.delete(key)
    this.want(key)
  }

  /** Everything but what is under way leaves memory; answers what waited behind others. */
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
