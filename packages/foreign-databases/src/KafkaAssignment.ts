import type { Offsets } from "./KafkaGroupCalls.ts"

/** A partition that is read. */
export interface Reading {
  readonly partition: number
  /** The offset of the next record. */
  position: bigint
  /** What the group has committed; -1: nothing. */
  committed: bigint
  /** Offsets of records that were given and are not settled, in their order, by receipts. */
  readonly unsettled: Map<number, bigint>
}

/** The partitions that the group has assigned to a member, and how far each is read. */
export class KafkaAssignment {
  readonly #readings = new Map<number, Reading>()
  readonly #receipts = new Map<number, Reading>()
  #receipt = 0

  get readings(): ReadonlyArray<Reading> {
    return [...this.#readings.values()]
  }

  /** How many records were given and are not settled. */
  get unsettled(): number {
    return this.#receipts.size
  }

  /** Begins with these offsets; `committed`: those that the group has already. */
  assign(offsets: Offsets, committed: Offsets): void {
    this.clear()
    for (const [partition, position] of offsets) {
      this.#readings.set(partition, {
        partition,
        position,
        committed: committed.get(partition) ?? -1n,
        unsettled: new Map()
      })
    }
  }

  /** What is not settled by now is somebody else's, or is read again. */
  clear(): void {
    this.#readings.clear()
    this.#receipts.clear()
  }

  has(reading: Reading): boolean {
    return this.#readings.get(reading.partition) === reading
  }

  /** The receipt of a record that is given. */
  give(reading: Reading, offset: bigint): number {
    const receipt = ++this.#receipt
    reading.unsettled.set(receipt, offset)
    reading.position = offset + 1n
    this.#receipts.set(receipt, reading)
    return receipt
  }

  settle(receipts: ReadonlyArray<number>): void {
    for (const receipt of receipts) {
      this.#receipts.get(receipt)?.unsettled.delete(receipt)
      this.#receipts.delete(receipt)
    }
  }

  /** Records that were given and that nobody has taken, the last ones of their partitions, count as not given. */
  withdraw(receipts: ReadonlyArray<number>): void {
    for (const receipt of receipts.toReversed()) {
      const reading = this.#receipts.get(receipt)
      if (reading !== undefined) reading.position = reading.unsettled.get(receipt)!
    }
    this.settle(receipts)
  }

  /** What the group is to commit: of each partition the offset before which all is settled. */
  get uncommitted(): Offsets {
    const offsets = new Map<number, bigint>()
    for (const { committed, partition, position, unsettled } of this.#readings.values()) {
      const [first = position] = unsettled.values()
      if (first !== committed) offsets.set(partition, first)
    }
    return offsets
  }

  committed(offsets: Offsets): void {
    for (const [partition, offset] of offsets) {
      const reading = this.#readings.get(partition)
      if (reading !== undefined) reading.committed = offset
    }
  }
}
