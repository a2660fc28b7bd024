import { longestValue, mostHeaders } from "./Consumer.ts"
import { decompressed } from "./KafkaCompression.ts"
import type { Aborted } from "./KafkaFetchCalls.ts"
import { crc32c } from "./KafkaRecords.ts"
import { breach } from "./ServerFrames.ts"
import { turn } from "./Turn.ts"

/** Batches of records as a broker gives them: checked, and read one record after the other. */

export interface ReadRecord {
  readonly offset: bigint
  /** Unix ms */
  readonly time: number
  /** Null: it has none. */
  readonly key: Buffer | null
  /** Null: it has none, as a record that says that a key is gone. */
  readonly value: Buffer | null
  /** The first headers that have a value which is not too long. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
}

const headBytes = 61
const checkedFrom = 21
const format = 2
/** Records before the wanted one that are passed over before others have the event loop. */
const passedAtOnce = 2_000
/** Bytes whose checksum is made before others have the event loop. */
const checkedAtOnce = 1024 * 1024

interface Head {
  readonly first: bigint
  readonly last: bigint
  readonly attributes: number
  readonly time: number
  readonly lastTime: number
  readonly producer: bigint
  readonly count: number
}

const isLogTime = ({ attributes }: Head): boolean => (attributes & 8) !== 0
const isOfTransaction = ({ attributes }: Head): boolean => (attributes & 16) !== 0
const isControl = ({ attributes }: Head): boolean => (attributes & 32) !== 0

const headOf = (batch: Buffer): Head => {
  const first = batch.readBigInt64BE(0)
  const behind = batch.readInt32BE(23)
  const count = batch.readInt32BE(57)
  if (first < 0n || behind < 0 || count < 0) throw breach("a batch of records has no valid head")
  return {
    first,
    last: first + BigInt(behind),
    attributes: batch.readInt16BE(21),
    time: Number(batch.readBigInt64BE(27)),
    lastTime: Number(batch.readBigInt64BE(35)),
    producer: batch.readBigInt64BE(43),
    count
  }
}

/** Reads the values of records. Throws a `RangeError` where they are cut off. */
class RecordValues {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  byte(): number {
    return this.#bytes.readUInt8(this.at++)
  }

  /** A number in the zigzag form, with 7 bits in each byte. One of more than 53 bits is not exact. */
  varint(): number {
    let value = 0
    let factor = 1
    for (let i = 0; i < 10; i++) {
      const byte = this.byte()
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
      factor *= 128
    }
    throw new RangeError("a number is too long")
  }

  /** Null: its length is below zero. */
  bytes(): Buffer | null {
    const length = this.varint()
    if (length < 0) return null
    const at = this.pass(length)
    return this.#bytes.subarray(at, at + length)
  }

  /** Passes over so many bytes, and returns where they begin. */
  pass(length: number): number {
    const at = this.at
    if (length < 0 || length > this.#bytes.length - at) throw new RangeError("a record is cut off")
    this.at += length
    return at
  }
}

const headersIn = (values: RecordValues): ReadRecord["headers"] => {
  const headers: Array<readonly [string, string]> = []
  const count = Math.min(values.varint(), mostHeaders)
  for (let i = 0; i < count; i++) {
    const name = values.bytes()
    const value = values.bytes()
    if (name === null) throw new RangeError("a header has no name")
    if (value !== null && name.length <= longestValue && value.length <= longestValue) {
      headers.push([name.toString("utf8"), value.toString("utf8")])
    }
  }
  return headers
}

/** The records from an offset on, in their order. Null: there may be more, but others should have the event loop. */
function* recordsIn(content: Buffer, head: Head, from: bigint): Generator<ReadRecord | null> {
  const values = new RecordValues(content)
  let last = head.first - 1n
  for (let i = 1; i <= head.count; i++) {
    if (i % passedAtOnce === 0) yield null
    const length = values.varint()
    const end = values.pass(length) + length
    values.at = end - length
    values.byte()
    const delta = values.varint()
    const behind = values.varint()
    if (!Number.isSafeInteger(behind)) throw breach("a record has no offset")
    const offset = head.first + BigInt(behind)
    if (offset <= last || offset > head.last) throw breach("the records of a batch are not in their order")
    last = offset
    if (offset >= from) {
      const [key, value] = [values.bytes(), values.bytes()]
      const headers = headersIn(values)
      if (values.at > end) throw breach("a record is longer than it says")
      yield { offset, key, value, headers, time: isLogTime(head) ? head.lastTime : head.time + delta }
    }
    values.at = end
  }
}

/** The records of a batch, and where the next batch begins. */
export interface OpenBatch {
  readonly next: bigint
  readonly records: Iterator<ReadRecord | null>
}

const nothing = [].values() as Iterator<never>

/** The batches of a partition that one fetch has given. Those of transactions that were taken back, and the marks of transactions, have no records. */
export class KafkaBatches {
  readonly #bytes: Buffer
  /** In the order of their first records. */
  readonly #aborted: Array<Aborted>
  /** Producers whose records are left out, up to the end of their transactions. */
  readonly #leftOut = new Set<bigint>()
  #at = 0

  constructor(bytes: Buffer, aborted: ReadonlyArray<Aborted>) {
    this.#bytes = bytes
    this.#aborted = aborted.toSorted((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))
  }

  /** Whether the first batch of these bytes is not cut off. */
  static isWhole(bytes: Buffer): boolean {
    return bytes.length >= 12 && bytes.readInt32BE(8) + 12 <= bytes.length
  }

  /** The next batch: its records from this offset on; null: there is no other that is whole. Throws a `ServerFault` or a `RangeError`. */
  async open(from: bigint): Promise<OpenBatch | null> {
    const left = this.#bytes.length - this.#at
    if (left < 12) return null
    const size = this.#bytes.readInt32BE(this.#at + 8) + 12
    if (size <= 16) throw breach("a batch of records has no valid length")
    if (size > left) return null
    const batch = this.#bytes.subarray(this.#at, this.#at + size)
    if (batch.readInt8(16) !== format) throw breach("the topic has records in a format of before Kafka 0.11")
    if (size < headBytes) throw breach("a batch of records has no valid length")
    this.#at += size
    await judgeSum(batch)
    const head = headOf(batch)
    if (head.last < from) throw breach("the broker gives records before those asked for")
    const next = head.last + 1n
    if (this.#isLeftOut(head, batch)) return { next, records: nothing }
    const content = await decompressed(head.attributes & 7, batch.subarray(headBytes))
    return { next, records: recordsIn(content, head, from) }
  }

  #isLeftOut(head: Head, batch: Buffer): boolean {
    while (this.#aborted[0] !== undefined && this.#aborted[0].from <= head.last) {
      this.#leftOut.add(this.#aborted.shift()!.producer)
    }
    if (!isControl(head)) return isOfTransaction(head) && this.#leftOut.has(head.producer)
    if (head.count > 0 && isAbort(batch)) this.#leftOut.delete(head.producer)
    return true
  }
}

/** Whether a mark says that a transaction was taken back. Its key is its version and its kind, which is 0 then. */
const isAbort = (batch: Buffer): boolean => {
  const values = new RecordValues(batch.subarray(headBytes))
  values.varint()
  values.byte()
  values.varint()
  values.varint()
  const key = values.bytes()
  return key !== null && key.length >= 4 && key.readInt16BE(2) === 0
}

const judgeSum = async (batch: Buffer): Promise<void> => {
  let sum = 0
  for (let at = checkedFrom; at < batch.length; at += checkedAtOnce) {
    if (at > checkedFrom) await turn()
    sum = crc32c([batch.subarray(at, at + checkedAtOnce)], sum)
  }
  if (sum !== batch.readUInt32BE(17)) throw breach("a batch of records has another checksum than it says")
}
