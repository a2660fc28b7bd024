import type { KafkaRecord } from "@tidegate/connectors/Brokers"
import { sizeOf } from "./KafkaFrames.ts"

/** Batches of records in Kafka's format 2, and the choice of their partition. */

export interface KafkaProducer {
  readonly id: bigint
  readonly epoch: number
}

/** Records of one producer for one partition. */
export interface KafkaBatch {
  readonly producer: KafkaProducer
  /** The number of the first record, among those of this producer in this partition. */
  readonly sequence: number
  readonly records: ReadonlyArray<KafkaRecord>
  /** Unix ms */
  readonly time: number
}

/** CRC-32C of each byte, and of each byte with one, two and three zeros behind it. Node's own `crc32` is of another polynomial. */
const checksums = new Uint32Array(1_024)
for (let byte = 0; byte < 256; byte++) {
  let sum = byte
  for (let i = 0; i < 8; i++) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ 0x82f63b78
  checksums[byte] = sum
}
for (let i = 256; i < 1_024; i++) {
  const before = checksums[i - 256]!
  checksums[i] = (before >>> 8) ^ checksums[before & 0xff]!
}

/**
 * Four bytes at a time: the largest event would hold the event loop for 30 ms otherwise. `before`: the checksum of what is before the parts.
 */
export const crc32c = (parts: ReadonlyArray<Uint8Array>, before = 0): number => {
  let sum = ~before
  for (const part of parts) {
    const whole = part.length & ~3
    for (let i = 0; i < whole; i += 4) {
      sum ^= part[i]! | (part[i + 1]! << 8) | (part[i + 2]! << 16) | (part[i + 3]! << 24)
      sum =
        checksums[768 + (sum & 0xff)]! ^
        checksums[512 + ((sum >>> 8) & 0xff)]! ^
        checksums[256 + ((sum >>> 16) & 0xff)]! ^
        checksums[sum >>> 24]!
    }
    for (let i = whole; i < part.length; i++) sum = (sum >>> 8) ^ checksums[(sum ^ part[i]!) & 0xff]!
  }
  return ~sum >>> 0
}

/** A number of at most 32 bits in the zigzag form, with 7 bits in each byte. */
const varint = (value: number): Buffer => {
  const bytes: Array<number> = []
  let left = ((value << 1) ^ (value >> 31)) >>> 0
  while (left > 0x7f) {
    bytes.push((left & 0x7f) | 0x80)
    left >>>= 7
  }
  bytes.push(left)
  return Buffer.from(bytes)
}

const nothing = varint(-1)

const sized = (value: string | Uint8Array): ReadonlyArray<Uint8Array> => {
  const bytes = typeof value === "string" ? Buffer.from(value) : value
  return [varint(bytes.length), bytes]
}

const recordParts = ({ headers, key, value }: KafkaRecord, i: number): ReadonlyArray<Uint8Array> => {
  const named = Object.entries(headers)
  const parts = [
    Buffer.concat([Buffer.from([0]), varint(0), varint(i), ...(key === null ? [nothing] : sized(key))]),
    ...sized(value),
    Buffer.concat([varint(named.length), ...named.flat().flatMap(sized)])
  ]
  return [varint(sizeOf(parts)), ...parts]
}

/** What a record needs in a batch, about. */
export const recordSize = ({ headers, key, value }: KafkaRecord): number =>
  value.length + (key?.length ?? 0) + JSON.stringify(headers).length + 32

const headBytes = 61
const checkedFrom = 21
const format = 2

/** The parts of a batch. The values of its records are not copied. */
export const recordBatch = ({ producer, records, sequence, time }: KafkaBatch): ReadonlyArray<Uint8Array> => {
  const content = records.flatMap(recordParts)
  const head = Buffer.alloc(headBytes)
  head.writeInt32BE(headBytes - 12 + sizeOf(content), 8)
  head.writeInt32BE(-1, 12)
  head.writeInt8(format, 16)
  head.writeInt32BE(records.length - 1, 23)
  head.writeBigInt64BE(BigInt(time), 27)
  head.writeBigInt64BE(BigInt(time), 35)
  head.writeBigInt64BE(producer.id, 43)
  head.writeInt16BE(producer.epoch, 51)
  head.writeInt32BE(sequence, 53)
  head.writeInt32BE(records.length, 57)
  head.writeUInt32BE(crc32c([head.subarray(checkedFrom), ...content]), 17)
  return [head, ...content]
}

/** The number of the record after `count` others. It begins again after the largest 32-bit number. */
export const sequenceAfter = (sequence: number, count: number): number => (sequence + count) & 0x7fffffff

const seed = 0x9747b28c
const multiplier = 0x5bd1e995

/** MurmurHash2, by which Kafka's own producers choose the partition of a key. */
export const murmur2 = (bytes: Buffer): number => {
  let hash = seed ^ bytes.length
  const whole = bytes.length & ~3
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(bytes.readInt32LE(at), multiplier)
    word = Math.imul(word ^ (word >>> 24), multiplier)
    hash = Math.imul(hash, multiplier) ^ word
  }
  for (let at = bytes.length - 1; at >= whole; at--) hash ^= bytes[at]! << ((at - whole) * 8)
  if (whole < bytes.length) hash = Math.imul(hash, multiplier)
  hash = Math.imul(hash ^ (hash >>> 13), multiplier)
  return hash ^ (hash >>> 15)
}

/** The partition of a key: the same that Kafka's own producers choose. */
export const partitionOfKey = (key: string, partitions: number): number =>
  (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions
