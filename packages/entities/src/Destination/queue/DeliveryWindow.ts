import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import { type DeliveryItem, weightOf } from "./DeliveryItem.ts"
import { ConnectionQueue } from "./ConnectionQueue.ts"
import type { KeyEnding } from "./OrderingKeys.ts"

/** The largest number of events that wait in memory; further ones wait in SQL. */
const windowSize = 1_000
/** The largest number of noted events. */
const maxNoted = 4_000
/** As often as this (ms), noted events that are older leave memory: they may have been cancelled, or wait for a retry that is far away. */
const notedMs = 30_000
/** This many events may always be in memory, whatever the other destinations hold. */
const minInMemory = 16
/** The last recorded attempt is remembered for at least this many events. */
const minRemembered = 4_096

/** Which events are in memory, how many a read may add, and which it need not read. */
export type WindowMemory = Pick<DeliveryWindow, "isKnown" | "knownByConnection" | "room" | "takeNoted">

/**
 * The events of one destination that are in memory: waiting in a connection queue, under way, or being recorded. All of it can be
 * lost at any time: the rows are in SQL. The window remembers which events it has and what was recorded recently, so that a row
 * that is read again is not delivered again.
 *
 *     add ─► connection queue ─► begin ─► [under way] ─► drop
 *
 * An event that does not fit stays in SQL, and its connection queue is `behind`.
 *
 * Events with an ordering key wait for their turn in SQL, because only SQL knows it. As far as there is room, those that are new are
 * noted: the read that finds their turn then need not read their content.
 */
export class DeliveryWindow {
  readonly queues = new Map<string, ConnectionQueue>()
  readonly #bytes: ByteShare
  /** Every event in memory, with its connection. */
  readonly #known = new Map<string, string>()
  /** New events with an ordering key whose turn is not known, the oldest first. */
  readonly #noted = new Map<string, DeliveryItem>()
  #notedBytes = 0
  /** When noted events were last looked through, by the clock of new events (Unix ms). */
  #notedSince = Number.NEGATIVE_INFINITY
  /** Recorded attempts by event, in two generations, so that a late copy of an event is recognized. */
  #recorded = new Map<string, number>()
  #recordedBefore = new Map<string, number>()
  #waiting = 0

  constructor(bytes: ByteShare) {
    this.#bytes = bytes
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  /** Events in connection queues. */
  get waiting(): number {
    return this.#waiting
  }

  get isHalfEmpty(): boolean {
    return this.#waiting * 2 <= windowSize
  }

  /** How many events a refill may add. Noted events leave memory for them. */
  get room(): number {
    return this.#waiting < windowSize && this.#hasBytes(0) ? windowSize - this.#waiting : 0
  }

  /** Notes a new event with an ordering key, if there is room. The noted ones stay, because their turn comes first. */
  note(item: DeliveryItem): void {
    const weight = weightOf(item)
    if (this.has(item) || this.#noted.has(item.eventId)) return
    if (item.createdAt > this.#notedSince + notedMs) this.#forgetOldNotes(item.createdAt)
    if (!this.#mayNote(weight)) return
    this.#noted.set(item.eventId, item)
    this.#notedBytes += weight
    this.#bytes.hold(weight)
  }

  /** Noted events leave as many bytes free as they hold, for events that may start. */
  #mayNote(weight: number): boolean {
    return this.#noted.size < maxNoted && this.#hasBytes(this.#notedBytes + weight)
  }

  #forgetOldNotes(now: number): void {
    this.#notedSince = now
    for (const { createdAt, eventId } of this.#noted.values()) if (createdAt < now - notedMs) this.takeNoted(eventId)
  }

  /** Takes a noted event: from here on it is the caller's. */
  takeNoted(eventId: string): DeliveryItem | undefined {
    const item = this.#noted.get(eventId)
    if (item === undefined) return undefined
    this.#noted.delete(eventId)
    this.#notedBytes -= weightOf(item)
    this.#bytes.release(weightOf(item))
    return item
  }

  /** Forgets the noted events of a connection, or all: they are in SQL. */
  forgetNoted(connectionId: string | null): void {
    for (const item of this.#noted.values()) {
      if (connectionId === null || item.connectionId === connectionId) this.takeNoted(item.eventId)
    }
  }

  #forgetNoted(): boolean {
    for (const eventId of this.#noted.keys()) return this.takeNoted(eventId) !== undefined
    return false
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

  /** Whether an event in this state is already here, or has progressed since. */
  has({ attempts, eventId }: DeliveryItem): boolean {
    if (this.#known.has(eventId)) return true
    const recorded = this.#recorded.get(eventId) ?? this.#recordedBefore.get(eventId)
    return recorded !== undefined && attempts < recorded
  }

  queueOf(connectionId: string): ConnectionQueue {
    let queue = this.queues.get(connectionId)
    if (queue === undefined) {
      queue = new ConnectionQueue(connectionId)
      this.queues.set(connectionId, queue)
    }
    return queue
  }

  /** Adds a new event to its connection queue. False: it does not fit. */
  add(queue: ConnectionQueue, item: DeliveryItem, now: number): boolean {
    const weight = weightOf(item)
    if (!this.#makeRoom(queue, weight)) return false
    this.#known.set(item.eventId, item.connectionId)
    this.#bytes.hold(weight)
    this.#waiting++
    queue.add(item, now)
    return true
  }

  /** An event that was taken from its connection queue is under way. */
  begin(): void {
    this.#waiting--
  }

  /** An event that was under way is the first of its connection queue again. */
  putBack(item: DeliveryItem): void {
    this.#waiting++
    this.queueOf(item.connectionId).putBack(item)
  }

  /** An event that was under way leaves memory. */
  drop(item: DeliveryItem): void {
    this.#known.delete(item.eventId)
    this.#bytes.release(weightOf(item))
  }

  /** An event that is under way goes on without its body. */
  lighten(item: DeliveryItem, light: DeliveryItem): void {
    this.#bytes.release(weightOf(item) - weightOf(light))
    if (item.orderingKey !== null) this.queueOf(item.connectionId).keys.replace(item.orderingKey, light)
  }

  /** An event is not under way any more: the next one of its ordering key may go. */
  over(item: DeliveryItem, how: KeyEnding, now: number): void {
    if (item.orderingKey !== null) this.#dropWaiting(this.queueOf(item.connectionId).end(item, how, now))
  }

  /** Remembers the recorded attempts of an event: only a row with a later attempt is taken in again. */
  remember(eventId: string, attempts: number): void {
    if (this.#recorded.size >= minRemembered) {
      this.#recordedBefore = this.#recorded
      this.#recorded = new Map()
    }
    this.#recorded.set(eventId, attempts)
  }

  /** An event of this connection queue stays in SQL. A refill under way may have read before it was stored. */
  turnAway(queue: ConnectionQueue): void {
    queue.behind = true
    queue.missed = true
  }

  /**
   * Removes the waiting events of a connection queue from memory. Their rows stay in SQL, and are read when the connection queue
   * is open again.
   */
  evict(queue: ConnectionQueue): void {
    this.#dropWaiting(queue.clear())
    this.forgetNoted(queue.connectionId)
    queue.behind = false
  }

  #dropWaiting(items: ReadonlyArray<DeliveryItem>): void {
    this.#waiting -= items.length
    for (const item of items) this.drop(item)
  }

  #hasRoom(weight: number): boolean {
    return this.#waiting < windowSize && this.#hasBytes(weight)
  }

  #hasBytes(weight: number): boolean {
    return this.#known.size + this.#noted.size < minInMemory || this.#bytes.hasRoom(weight)
  }

  /** A full window drops events of its longest connection queue, so that no backlog keeps the other connection queues out. */
  #makeRoom(queue: ConnectionQueue, weight: number): boolean {
    while (!this.#hasRoom(weight)) {
      if (this.#waiting < windowSize && this.#forgetNoted()) continue
      let longest = queue
      for (const other of this.queues.values()) if (other.size > longest.size) longest = other
      if (longest.size <= queue.size + 1) return false
      const item = longest.takeLast()!
      this.#dropWaiting([item])
      // The poller does not find an event that waits behind others of its ordering key: the key is read again.
      if (item.place === null || item.attempts > 0) this.turnAway(longest)
    }
    return true
  }
}
