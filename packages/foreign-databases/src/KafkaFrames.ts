/**
 * The values of Kafka's protocol in its older encoding, which all brokers of the last years speak. No client library is used:
 * `@platformatic/kafka` opens its sockets itself, `kafkajs` is not maintained, and both store an answer of any length.
 */

/** Reads the values of an answer one after the other. Throws a `RangeError` where the answer is too short. */
export class KafkaValues {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  #next(length: number): number {
    const at = this.#at
    if (length < 0 || at + length > this.#bytes.length) throw new RangeError("the answer is too short")
    this.#at += length
    return at
  }
  boolean(): boolean {
    return this.int8() !== 0
  }
  int8(): number {
    return this.#bytes.readInt8(this.#next(1))
  }
  int16(): number {
    return this.#bytes.readInt16BE(this.#next(2))
  }
  int32(): number {
    return this.#bytes.readInt32BE(this.#next(4))
  }
  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#next(8))
  }
  text(): string {
    const length = this.int16()
    const at = this.#next(length)
    return this.#bytes.toString("utf8", at, at + length)
  }
  /** Null is read as an empty text. */
  optionalText(): string {
    const length = this.int16()
    const at = this.#next(Math.max(0, length))
    return this.#bytes.toString("utf8", at, at + length)
  }
  bytes(): Buffer {
    const length = this.int32()
    const at = this.#next(length)
    return this.#bytes.subarray(at, at + length)
  }
  /** Null is read as no bytes. */
  optionalBytes(): Buffer {
    const length = this.int32()
    const at = this.#next(Math.max(0, length))
    return this.#bytes.subarray(at, at + Math.max(0, length))
  }
  /** `most`: elements. Every element has at least two bytes, so a wrong length costs no more than the answer has. Null is read as no elements. */
  list<A>(read: () => A, most = Infinity): ReadonlyArray<A> {
    const length = this.int32()
    if (length > most || length * 2 > this.#bytes.length) throw new RangeError("the list is longer than it can be")
    return Array.from({ length: Math.max(0, length) }, read)
  }
}

export const int16 = (value: number): Buffer => {
  const buffer = Buffer.allocUnsafe(2)
  buffer.writeInt16BE(value)
  return buffer
}
export const int32 = (value: number): Buffer => {
  const buffer = Buffer.allocUnsafe(4)
  buffer.writeInt32BE(value)
  return buffer
}
export const int64 = (value: bigint): Buffer => {
  const buffer = Buffer.allocUnsafe(8)
  buffer.writeBigInt64BE(value)
  return buffer
}
export const nullText = int16(-1)
export const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([int16(bytes.length), bytes])
}
export const bytes = (value: Uint8Array): Buffer => Buffer.concat([int32(value.length), value])
export const listOf = (elements: ReadonlyArray<Buffer>): Buffer => Buffer.concat([int32(elements.length), ...elements])
export const listOfOne = (element: Buffer): Buffer => listOf([element])

export const sizeOf = (parts: ReadonlyArray<Uint8Array>): number => parts.reduce((sum, part) => sum + part.length, 0)

/** A call to a broker, and how its answer is read. */
export interface KafkaCall<A> {
  readonly key: number
  /** The lowest and the highest version that is spoken here. */
  readonly versions: readonly [lowest: number, highest: number]
  /** A function if it is another one for each version. */
  readonly body: ReadonlyArray<Uint8Array> | ((version: number) => ReadonlyArray<Uint8Array>)
  /** The longest answer, in bytes. */
  readonly longest: number
  /** How long (ms) the broker may take for the answer, if not as long as for others. */
  readonly patience?: number
  readonly read: (values: KafkaValues, version: number) => A
}

const clientId = text("tidegate")

/** The bytes of a call, in parts. Those of its body are not copied. */
export const requestOf = ({ body, key }: KafkaCall<unknown>, version: number, correlation: number) => {
  const head = Buffer.concat([int16(key), int16(version), int32(correlation), clientId])
  const parts = typeof body === "function" ? body(version) : body
  return [int32(head.length + sizeOf(parts)), head, ...parts]
}
