import type { DeliveryItem } from "./DeliveryItem.ts"

/**
 * The part of a destination's window that belongs to one connection: what is ready in due order, and what becomes due
 * soon. `behind`: SQL holds due rows of this lane that are not in memory; `missed`: some were turned away since the last
 * read of SQL began, which may not have seen them.
 */
export class Lane {
  readonly connectionId: string
  behind = false
  missed = false
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
    return this.readyCount + this.#waiting.length
  }

  /** When the first waiting item becomes due, or null. */
  get nextDue(): number | null {
    return this.#waiting[0]?.dueAt ?? null
  }

  add(item: DeliveryItem, now: number): void {
    if (item.dueAt <= now) this.#ready.push(item)
    else this.#push(item)
  }

  /** Moves what has become due behind what is ready. */
  ripen(now: number): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.dueAt <= now) this.#ready.push(this.#pop())
  }

  shift(): DeliveryItem | undefined {
    if (this.#head === this.#ready.length) return undefined
    const item = this.#ready[this.#head]
    this.#head++
    if (this.#head > 64 && this.#head * 2 > this.#ready.length) {
      this.#ready = this.#ready.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Takes out one of those whose turn is farthest away. */
  takeLast(): DeliveryItem | undefined {
    return this.#waiting.pop() ?? (this.readyCount > 0 ? this.#ready.pop() : undefined)
  }

  /** Empties the lane and returns what was in it. */
  clear(): ReadonlyArray<DeliveryItem> {
    const items = [...this.#ready.slice(this.#head), ...this.#waiting]
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
