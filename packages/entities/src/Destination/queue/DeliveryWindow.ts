import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import { type DeliveryItem, weightOf } from "./DeliveryItem.ts"
import { ConnectionQueue } from "./ConnectionQueue.ts"
import type { LineEnding } from "./OrderingKeys.ts"

/** How many events wait in memory at the most; what comes on top waits in SQL. */
const windowSize = 1_000
/** So few events in memory are always allowed, whatever the other destinations hold. */
const minInMemory = 16
/** Of so many events at least it is remembered what was recorded of them last. */
const minRemembered = 4_096

/**
 * The events of one destination that are in memory: waiting in a lane, on the wire, or being recorded. All of it can be lost at any
 * time: the rows are in SQL. What is known, and what was recorded lately, keep a row that is read again from being delivered again.
 *
 *     add ─► lane ─► begin ─► [under way] ─► drop
 *
 * What does not fit stays in SQL, and its lane is `behind`.
 */
export class DeliveryWindow {
  readonly lanes = new Map<string, ConnectionQueue>()
  readonly #bytes: ByteShare
  /** Every event in memory, with its connection. */
  readonly #known = new Map<string, string>()
  /** Attempts recorded, by event: two generations, so that a late copy of an event is recognised. */
  #recorded = new Map<string, number>()
  #recordedBefore = new Map<string, number>()
  #waiting = 0

  constructor(bytes: ByteShare) {
    this.#bytes = bytes
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  /** Events in lanes. */
  get waiting(): number {
    return this.#waiting
  }

  get isHalfEmpty(): boolean {
    return this.#waiting * 2 <= windowSize
  }

  /** Room for a refill, in events. */
  get room(): number {
    return this.#hasRoom(0) ? windowSize - this.#waiting : 0
  }

  isKnown(eventId: string): boolean {
    return this.#known.has(eventId)
  }

  /** How many events of each connection are in memory. */
  knownByConnection(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const connectionId of this.#known.values()) counts.set(connectionId, (counts.get(connectionId) ?? 0) + 1)
    return counts
  }

  /** Whether an event in this state is already here, or has gone on since. */
  has({ attempts, eventId }: DeliveryItem): boolean {
    if (this.#known.has(eventId)) return true
    const recorded = this.#recorded.get(eventId) ?? this.#recordedBefore.get(eventId)
    return recorded !== undefined && attempts < recorded
  }

  lane(connectionId: string): ConnectionQueue {
    let lane = this.lanes.get(connectionId)
    if (lane === undefined) {
      lane = new ConnectionQueue(connectionId)
      this.lanes.set(connectionId, lane)
    }
    return lane
  }

  /** Puts an event that is not here into its lane. False: there is no room for it. */
  add(lane: ConnectionQueue, item: DeliveryItem, now: number): boolean {
    const weight = weightOf(item)
    if (!this.#makeRoom(lane, weight)) return false
    this.#known.set(item.eventId, item.connectionId)
    this.#bytes.hold(weight)
    this.#waiting++
    lane.add(item, now)
    return true
  }

  /** One that its lane has given out is under way. */
  begin(): void {
    this.#waiting--
  }

  /** One that was under way is the first of its lane again. */
  putBack(item: DeliveryItem): void {
    this.#waiting++
    this.lane(item.connectionId).putBack(item)
  }

  /** One that was under way leaves memory. */
  drop(item: DeliveryItem): void {
    this.#known.delete(item.eventId)
    this.#bytes.release(weightOf(item))
  }

  /** What was under way is not any more: of its line, the next one may go. */
  over(item: DeliveryItem, how: LineEnding, now: number): void {
    if (item.orderingKey !== null) this.#dropWaiting(this.lane(item.connectionId).end(item, how, now))
  }

  /** What was recorded of an event: only a row that has gone on since is taken in again. */
  remember(eventId: string, attempts: number): void {
    if (this.#recorded.size >= minRemembered) {
      this.#recordedBefore = this.#recorded
      this.#recorded = new Map()
    }
    this.#recorded.set(eventId, attempts)
  }

  /** Something of this lane stays in SQL. A refill under way may have read before it was there. */
  turnAway(lane: ConnectionQueue): void {
    lane.behind = true
    lane.missed = true
  }

  /** What waits in the lane leaves memory. Its rows stay in SQL; a lane that is opened is read again. */
  evict(lane: ConnectionQueue): void {
    this.#dropWaiting(lane.clear())
    lane.behind = false
  }

  #dropWaiting(items: ReadonlyArray<DeliveryItem>): void {
    this.#waiting -= items.length
    for (const item of items) this.drop(item)
  }

  #hasRoom(weight: number): boolean {
    if (this.#waiting >= windowSize) return false
    return this.#known.size < minInMemory || this.#bytes.hasRoom(weight)
  }

  /** A full window makes room at the expense of its longest lane, so that no backlog keeps the other lanes out. */
  #makeRoom(lane: ConnectionQueue, weight: number): boolean {
    while (!this.#hasRoom(weight)) {
      let longest = lane
      for (const other of this.lanes.values()) if (other.size > longest.size) longest = other
      if (longest.size <= lane.size + 1) return false
      const item = longest.takeLast()!
      this.#dropWaiting([item])
      // One that waits for its turn is not found by the clock: its line is read again.
      if (item.place === null || item.attempts > 0) this.turnAway(longest)
    }
    return true
  }
}
