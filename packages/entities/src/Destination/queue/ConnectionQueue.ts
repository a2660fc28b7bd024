import type { DeliveryItem } from "./DeliveryItem.ts"
import { type KeyEnding, OrderingKeys } from "./OrderingKeys.ts"

/**
 * The part of a destination's window that belongs to one connection: events that are ready, by due time, and events that are due
 * soon. `behind`: SQL has due rows of this connection queue that are not in memory. `missed`: some events were turned away since
 * the last read of SQL began, which may not have seen them. Of the events with one ordering key, only the first is here; `keys`
 * holds the others.
 */
export class ConnectionQueue {
  readonly connectionId: string
  behind = false
  missed = false
  readonly keys = new OrderingKeys()
  #ready: Array<DeliveryItem> = []
  #head = 0
  /** A binary heap by due time. */
  readonly #waiting: Array<DeliveryItem> = []

  constructor(connectionId: string) {
    this.connectionId = connectionId
  }

  get readyCount(): number {
    return this.#ready.length - this.#head
  }

  get size(): number {
    return this.readyCount + this.#waiting.length + this.keys.size
  }

  /** Whether it holds nothing, and SQL has nothing for it. */
  get isUnused(): boolean {
    return this.size === 0 && !this.behind && this.keys.isEmpty
  }

  /** When the first waiting item becomes due, or null. */
  get nextDue(): number | null {
    return this.#waiting[0]?.dueAt ?? null
  }

  add(item: DeliveryItem, now: number): void {
    // A retry that no longer blocks its ordering key ("skip") does not hold the others up before it is due.
    const waitsAlone = item.place === null && item.dueAt > now
    if (item.orderingKey === null || waitsAlone || this.keys.enter(item.orderingKey, item)) this.#schedule(item, now)
  }

  #schedule(item: DeliveryItem, now: number): void {
    if (item.dueAt <= now) this.#ready.push(item)
    else this.#push(item)
  }

  /** Moves events that have become due to the end of the ready ones. */
  ripen(now: number): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.dueAt <= now) {
      const item = this.#pop()
      if (item.orderingKey === null || item.place !== null || this.keys.enter(item.orderingKey, item)) {
        this.#ready.push(item)
      }
    }
  }

  shift(): DeliveryItem | undefined {
    if (this.#head === this.#ready.length) return undefined
    const item = this.#ready[this.#head]!
    this.#head++
    if (item.orderingKey !== null) this.keys.begin(item.orderingKey)
    if (this.#head === this.#ready.length) {
      // What has left is not kept in memory.
      this.#ready.length = 0
      this.#head = 0
    } else if (this.#head > 64 && this.#head * 2 > this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** An event that was taken by `shift` was not started after all: it is the first again. Not for events with an ordering key. */
  putBack(item: DeliveryItem): void {
    if (this.#head > 0) this.#ready[--this.#head] = item
    else this.#ready.unshift(item)
  }

  /**
   * An event that was taken by `shift` is not under way any more: the next one of its ordering key may go. Returns the events
   * that leave memory with it.
   */
  end({ orderingKey }: DeliveryItem, how: KeyEnding, now: number): ReadonlyArray<DeliveryItem> {
    if (orderingKey === null) return []
    const { dropped, next } = this.keys.end(orderingKey, how)
    if (next !== null) this.#schedule(next, now)
    return dropped
  }

  /** Removes one of the events that are due last. */
  takeLast(): DeliveryItem | undefined {
    const behind = this.keys.takeLast()
    if (behind !== undefined) return behind
    const item = this.#waiting.pop() ?? (this.readyCount > 0 ? this.#ready.pop() : undefined)
    if (item !== undefined && item.orderingKey !== null) this.keys.forget(item.orderingKey, item)
    return item
  }

  /** Empties the connection queue and returns its events. */
  clear(): ReadonlyArray<DeliveryItem> {
    const items = [...this.#ready.slice(this.#head), ...this.#waiting, ...this.keys.clear()]
    this.#ready = []
    this.#head = 0
    this.#waiting.length = 0
    return items
  }

  #push(item: DeliveryItem): void {
    const heap = this.#waiting
    let at = heap.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.dueAt <= item.dueAt) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = item
  }

  #pop(): DeliveryItem {
    const heap = this.#waiting
    const top = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return top
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.dueAt < heap[child]!.dueAt) child++
      if (heap[child]!.dueAt >= last.dueAt) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return top
  }
}
