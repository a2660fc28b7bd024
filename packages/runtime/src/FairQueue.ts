/** What a batch may hold. An item that is larger than that is a batch by itself. */
export interface BatchLimits {
  readonly bytes: number
  /** How many units of work. */
  readonly work: number
}

/** An item that waits, with its bytes and its units of work. */
interface Waiting<Item> extends BatchLimits {
  readonly item: Item
}

/** The waiting items of one key, in their order. */
class KeyItems<Item> {
  #items: Array<Waiting<Item>> = []
  #first = 0

  add(item: Waiting<Item>): void {
    this.#items.push(item)
  }

  get first(): Waiting<Item> | undefined {
    return this.#items[this.#first]
  }

  removeFirst(): void {
    this.#first++
    // Halving it now and then costs a constant time for each item.
    if (this.#first * 2 < this.#items.length) return
    this.#items = this.#items.slice(this.#first)
    this.#first = 0
  }

  /** It keeps no reference to them: the garbage collector may find this object long after its end, and what it refers to as well. */
  moveTo(batch: Array<Item>): void {
    for (let at = this.#first; at < this.#items.length; at++) batch.push(this.#items[at]!.item)
    this.#items = []
    this.#first = 0
  }
}

/**
 * Items of many keys that wait for a batch. If all of them fit into one batch, all are taken. Otherwise keys take turns, one item each,
 * so that the items of a quiet key do not wait for those of a flooded one. The items of one key keep their order.
 */
export class FairQueue<Item> {
  /** In the order of their turns. */
  readonly #keys = new Map<string, KeyItems<Item>>()
  #bytes = 0
  #work = 0
  /** How many items wait. */
  length = 0

  add(key: string, item: Item, { bytes, work }: BatchLimits): void {
    let items = this.#keys.get(key)
    if (items === undefined) this.#keys.set(key, (items = new KeyItems()))
    items.add({ item, bytes, work })
    this.#bytes += bytes
    this.#work += work
    this.length++
  }

  /** Removes the next batch. It is empty only if nothing waits. */
  take(limits: BatchLimits): ReadonlyArray<Item> {
    return this.#bytes <= limits.bytes && this.#work <= limits.work ? this.#takeAll() : this.#takeTurns(limits)
  }

  #takeAll(): ReadonlyArray<Item> {
    const batch: Array<Item> = []
    for (const items of this.#keys.values()) items.moveTo(batch)
    this.#keys.clear()
    this.#bytes = 0
    this.#work = 0
    this.length = 0
    return batch
  }

  #takeTurns(limits: BatchLimits): ReadonlyArray<Item> {
    const batch: Array<Item> = []
    let bytes = 0
    let work = 0
    // A key that was served is put behind the others, and the loop reaches it again after them.
    for (const [key, items] of this.#keys) {
      const next = items.first!
      bytes += next.bytes
      work += next.work
      if (batch.length > 0 && (bytes > limits.bytes || work > limits.work)) break
      batch.push(next.item)
      items.removeFirst()
      this.#bytes -= next.bytes
      this.#work -= next.work
      this.length--
      this.#keys.delete(key)
      if (items.first !== undefined) this.#keys.set(key, items)
    }
    return batch
  }
}
