import { FrameCutter, type FrameHead } from "./FrameCutter.ts"
import { ServerFault } from "./ServerFrames.ts"

/**
 * The frames of AMQP 0-9-1, as far as a publisher and a consumer need them. No client library is used: those that there are open their sockets
 * themselves, so none can be given one that the guard has opened.
 */

export const frameKinds = { method: 1, header: 2, body: 3, heartbeat: 8 } as const
const frameEnd = 0xce
const frameHead = 7

/** The protocol's minimum, in effect until both sides have agreed on another. */
export const shortestMax = 4_096
/** The largest frame that is agreed on. */
export const longestFrame = 131_072

/** A method's class and id as one number. */
const method = (group: number, id: number): number => group * 65_536 + id
export const methods = {
  start: method(10, 10),
  startOk: method(10, 11),
  tune: method(10, 30),
  tuneOk: method(10, 31),
  open: method(10, 40),
  openOk: method(10, 41),
  close: method(10, 50),
  closeOk: method(10, 51),
  blocked: method(10, 60),
  unblocked: method(10, 61),
  channelOpen: method(20, 10),
  channelOpenOk: method(20, 11),
  channelClose: method(20, 40),
  select: method(85, 10),
  selectOk: method(85, 11),
  publish: method(60, 40),
  qos: method(60, 10),
  qosOk: method(60, 11),
  consume: method(60, 20),
  consumeOk: method(60, 21),
  cancel: method(60, 30),
  returned: method(60, 50),
  deliver: method(60, 60),
  ack: method(60, 80),
  reject: method(60, 90),
  nack: method(60, 120)
} as const

export interface Frame {
  readonly kind: number
  readonly payload: Buffer
}

const kinds: ReadonlySet<number> = new Set(Object.values(frameKinds))

/** The broker's frames. */
export class FrameReader {
  /** The longest frame; the protocol's minimum until both sides have agreed. */
  longest: number = shortestMax
  readonly #pass: (frame: Frame) => void
  readonly #cutter = new FrameCutter(frameHead, (head) => this.#begin(head))

  readonly #bodies: "kept" | "dropped"

  /** `bodies`: whether they are passed on, or dropped as they arrive. */
  constructor(pass: (frame: Frame) => void, bodies: "kept" | "dropped" = "dropped") {
    this.#pass = pass
    this.#bodies = bodies
  }

  read(chunk: Buffer): void {
    this.#cutter.read(chunk, (frame) => {
      if (frame.at(-1) !== frameEnd) throw new ServerFault("PROTOCOL_ERROR", "the broker sends a frame without an end")
      this.#pass({ kind: frame[0]!, payload: frame.subarray(frameHead, -1) })
    })
  }

  #begin(head: Buffer): FrameHead {
    const kind = head[0]!
    if (!kinds.has(kind)) throw new ServerFault("PROTOCOL_ERROR", "the server does not speak AMQP 0-9-1")
    const size = frameHead + head.readUInt32BE(3) + 1
    if (size > this.longest) throw new ServerFault("RESPONSE_TOO_LARGE", "the broker sends a frame that is too long")
    return { size, isDropped: kind === frameKinds.body && this.#bodies === "dropped" }
  }
}

/** Reads the values of a frame one after the other. Throws a `RangeError` where the frame is too short. */
export class Values {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  #next(length: number): number {
    const at = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) throw new RangeError("the frame is too short")
    return at
  }
  octet(): number {
    return this.#bytes.readUInt8(this.#next(1))
  }
  short(): number {
    return this.#bytes.readUInt16BE(this.#next(2))
  }
  long(): number {
    return this.#bytes.readUInt32BE(this.#next(4))
  }
  longLong(): number {
    return Number(this.#bytes.readBigUInt64BE(this.#next(8)))
  }
  shortText(): string {
    const length = this.octet()
    const at = this.#next(length)
    return this.#bytes.toString("utf8", at, at + length)
  }
  longText(encoding: "latin1" | "utf8" = "latin1"): string {
    const length = this.long()
    const at = this.#next(length)
    return this.#bytes.toString(encoding, at, at + length)
  }
  /** A table or a list, which may be nested deeply: it is not read. */
  skipTable(): void {
    this.#next(this.long())
  }
  /** Bytes that are not read. */
  skip(bytes: number): void {
    this.#next(bytes)
  }
  /** The values of the next part, which begins with its length. */
  part(): Values {
    const length = this.long()
    const at = this.#next(length)
    return new Values(this.#bytes.subarray(at, at + length))
  }
  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }
  signed(bytes: 1 | 2 | 4): number {
    return this.#bytes.readIntBE(this.#next(bytes), bytes)
  }
  signedLong(): bigint {
    return this.#bytes.readBigInt64BE(this.#next(8))
  }
  float(): number {
    return this.#bytes.readFloatBE(this.#next(4))
  }
  double(): number {
    return this.#bytes.readDoubleBE(this.#next(8))
  }
}

const number = (value: number, bytes: 1 | 2 | 4 | 8): Buffer => {
  const buffer = Buffer.alloc(bytes)
  if (bytes === 8) buffer.writeBigUInt64BE(BigInt(value))
  else buffer.writeUIntBE(value, 0, bytes)
  return buffer
}
export const octet = (value: number): Buffer => number(value, 1)
export const short = (value: number): Buffer => number(value, 2)
export const long = (value: number): Buffer => number(value, 4)
export const longLong = (value: number): Buffer => number(value, 8)

/** The caller has checked that it has at most 255 bytes. */
export const shortText = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  return Buffer.concat([octet(bytes.length), bytes])
}
export const longText = (text: string): Buffer => {
  const bytes = Buffer.from(text)
  return Buffer.concat([long(bytes.length), bytes])
}

/** A table of texts, switches and tables of them. */
export interface Table {
  readonly [name: string]: string | boolean | Table
}
export const table = (values: Table): Buffer => {
  const entries = Object.entries(values).flatMap(([name, value]) => [
    shortText(name),
    typeof value === "string"
      ? Buffer.concat([Buffer.from("S"), longText(value)])
      : typeof value === "boolean"
        ? Buffer.concat([Buffer.from("t"), octet(Number(value))])
        : Buffer.concat([Buffer.from("F"), table(value)])
  ])
  const bytes = Buffer.concat(entries)
  return Buffer.concat([long(bytes.length), bytes])
}

const end = octet(frameEnd)

const frameOf = (kind: number, channel: number, payload: Buffer): Buffer =>
  Buffer.concat([octet(kind), short(channel), long(payload.length), payload, end])

export const methodFrame = (channel: number, method: number, ...values: ReadonlyArray<Buffer>): Buffer =>
  frameOf(frameKinds.method, channel, Buffer.concat([long(method), ...values]))

export const headerFrame = (channel: number, properties: Buffer, bodyLength: number): Buffer =>
  frameOf(frameKinds.header, channel, Buffer.concat([short(60), short(0), longLong(bodyLength), properties]))

export const heartbeatFrame = frameOf(frameKinds.heartbeat, 0, Buffer.alloc(0))

/** The parts of the frames of a body. The body is not copied. */
export const bodyFrames = (channel: number, body: Uint8Array, longest: number): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  const most = longest - frameHead - 1
  for (let at = 0; at < body.length; at += most) {
    const part = body.subarray(at, at + most)
    parts.push(Buffer.concat([octet(frameKinds.body), short(channel), long(part.length)]), part, end)
  }
  return parts
}
