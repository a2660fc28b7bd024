import { promisify } from "node:util"
import { gunzip, zstdDecompress } from "node:zlib"
import { ServerFault } from "./ServerFrames.ts"
import { turn } from "./Turn.ts"

/** The codecs of Kafka's batches, by their numbers. What a batch has without its compression is bounded. */

/** Bytes that the records of a batch may have without their compression. */
const largest = 16 * 1024 * 1024
/** Steps of a decoder, after which others have the event loop. */
const stepsAtOnce = 32_768

type Decoder = (compressed: Buffer) => Promise<Buffer>

const tooLarge = (): ServerFault =>
  new ServerFault(
    "RESPONSE_TOO_LARGE",
    `a batch of records has more than ${largest / 1024 / 1024} MiB without its compression`
  )

/** What a decoder has written so far, to which it refers. */
class Output {
  #bytes: Buffer
  #length = 0

  constructor(about: number) {
    this.#bytes = Buffer.allocUnsafe(Math.min(about, largest))
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(length: number): void {
    const needed = this.#length + length
    if (needed > largest) throw tooLarge()
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.min(largest, Math.max(needed, 2 * this.#bytes.length)))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  write(from: Buffer, at: number, length: number): void {
    if (length > from.length - at) throw new RangeError("the compressed bytes are cut off")
    this.#room(length)
    from.copy(this.#bytes, this.#length, at, at + length)
    this.#length += length
  }

  /** Repeats what was written so many bytes ago. What it writes may be part of what it repeats. `since`: how far back it may refer. */
  repeat(distance: number, length: number, since = 0): void {
    const from = this.#length - distance
    if (distance === 0 || from < since) throw new RangeError("the compressed bytes refer to what is before them")
    this.#room(length)
    const end = this.#length + length
    while (this.#length < end) {
      const part = Math.min(end - this.#length, this.#length - from)
      this.#bytes.copyWithin(this.#length, from, from + part)
      this.#length += part
    }
  }
}

/** Reads `bytes` bytes as a little-endian number. */
const littleEndian = (from: Buffer, at: number, bytes: number): number => from.readUIntLE(at, bytes)

/** A block of Snappy: its length without the compression, then literals and references. */
function* snappyBlock(from: Buffer, output: Output): Generator<void> {
  let at = 0
  while (from.readUInt8(at++) > 0x7f) if (at > 4) throw new RangeError("the length is too long")
  const since = output.bytes.length
  for (let steps = 1; at < from.length; steps++) {
    if (steps % stepsAtOnce === 0) yield
    const tag = from.readUInt8(at++)
    const kind = tag & 3
    if (kind === 0) {
      const more = Math.max(0, (tag >> 2) - 59)
      const length = (more === 0 ? tag >> 2 : littleEndian(from, at, more)) + 1
      at += more
      output.write(from, at, length)
      at += length
    } else if (kind === 1) {
      output.repeat(((tag >> 5) << 8) | from.readUInt8(at++), ((tag >> 2) & 7) + 4, since)
    } else {
      const bytes = kind === 2 ? 2 : 4
      output.repeat(littleEndian(from, at, bytes), (tag >> 2) + 1, since)
      at += bytes
    }
  }
}

/** What the blocks of Kafka's own producers are preceded by; others write one block without a head. */
const snappyHead = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const snappyHeadBytes = 16

function* snappy(from: Buffer, output: Output): Generator<void> {
  const hasHead = from.subarray(0, snappyHead.length).equals(snappyHead)
  if (!hasHead) yield* snappyBlock(from, output)
  for (let at = hasHead ? snappyHeadBytes : from.length; at < from.length;) {
    const length = from.readUInt32BE(at)
    at += 4
    if (length > from.length - at) throw new RangeError("the compressed bytes are cut off")
    yield* snappyBlock(from.subarray(at, at + length), output)
    at += length
    yield
  }
}

function* lz4Block(from: Buffer, output: Output): Generator<void> {
  let at = 0
  const lengthOf = (part: number): number => {
    let length = part
    if (part !== 15) return length
    for (let byte = 255; byte === 255; length += byte) {
      byte = from.readUInt8(at++)
      // Otherwise one number may be as long as all that came.
      if (length > largest) throw tooLarge()
    }
    return length
  }
  for (let steps = 1; at < from.length; steps++) {
    if (steps % stepsAtOnce === 0) yield
    const token = from.readUInt8(at++)
    const literals = lengthOf(token >> 4)
    output.write(from, at, literals)
    at += literals
    if (at === from.length) return
    const distance = from.readUInt16LE(at)
    at += 2
    output.repeat(distance, lengthOf(token & 15) + 4)
  }
}

const lz4Magic = 0x184d2204

/** A frame of LZ4. Its checksums are not looked at, because the batch has one. */
function* lz4(from: Buffer, output: Output): Generator<void> {
  if (from.readUInt32LE(0) !== lz4Magic) throw new RangeError("it is no frame of LZ4")
  const flags = from.readUInt8(4)
  const hasBlockSums = (flags & 16) !== 0
  for (let at = 7 + ((flags & 8) === 0 ? 0 : 8) + ((flags & 1) === 0 ? 0 : 4); ;) {
    const head = from.readUInt32LE(at)
    at += 4
    if (head === 0) return
    const length = head & 0x7fffffff
    if (length > from.length - at) throw new RangeError("the compressed bytes are cut off")
    if (head === length) yield* lz4Block(from.subarray(at, at + length), output)
    else output.write(from, at, length)
    at += length + (hasBlockSums ? 4 : 0)
    yield
  }
}

const stepwise =
  (decode: (from: Buffer, output: Output) => Generator<void>): Decoder =>
  async (compressed) => {
    const output = new Output(4 * compressed.length)
    const since = { at: performance.now() }
    for (const _ of decode(compressed, output)) {
      if (performance.now() - since.at < 5) continue
      await turn()
      since.at = performance.now()
    }
    return output.bytes
  }

/** Node's own decoders work in a thread of their own. */
const native =
  (decode: (compressed: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>): Decoder =>
  (compressed) =>
    decode(compressed, { maxOutputLength: largest })

const decoders: ReadonlyArray<Decoder> = [
  (records) => Promise.resolve(records),
  native(promisify(gunzip)),
  stepwise(snappy),
  stepwise(lz4),
  native(promisify(zstdDecompress))
]

/** The records of a batch without their compression. Throws a `ServerFault` if there is too much of them, or they are no such records. */
export const decompressed = async (codec: number, records: Buffer): Promise<Buffer> => {
  const decode = decoders[codec]
  if (decode === undefined) {
    throw new ServerFault("PROTOCOL_ERROR", `the topic has records with a compression that is not known (${codec})`)
  }
  try {
    return await decode(records)
  } catch (fault) {
    if (fault instanceof ServerFault) throw fault
    if (fault instanceof Error && "code" in fault && fault.code === "ERR_BUFFER_TOO_LARGE") throw tooLarge()
    throw new ServerFault("PROTOCOL_ERROR", "the topic has records whose compression is damaged")
  }
}
