import { ServerFault } from "./ServerFrames.ts"

const lineFeed = 0x0a
const lineEnd = Buffer.from("\r\n")
const nothing = Buffer.alloc(0)

/**
 * Cuts the bytes of an untrusted server into lines, and the bytes that follow a line as it says. `begin` judges the line before these are
 * stored. Holds at most one line and what belongs to it.
 */
export class LineCutter {
  readonly #begin: (line: string) => number | null
  readonly #held: Buffer
  #have = 0
  /** The line whose bytes are arriving; null: a line is arriving. */
  #line: string | null = null
  /** These bytes, with the line end after them. */
  #body = nothing
  readonly #longestKept: number
  /** Bytes of them that are still to be dropped. */
  #dropping = 0

  /**
   * `longest`: bytes of a line, with its end. `begin` returns how many bytes follow, before another line end; null: none. It throws if the
   * line must end the session. What follows is dropped as it arrives, and passed on as nothing, if it has more than `longestKept` bytes.
   */
  constructor(longest: number, begin: (line: string) => number | null, longestKept = Infinity) {
    this.#held = Buffer.allocUnsafe(longest)
    this.#begin = begin
    this.#longestKept = longestKept
  }

  /** Whether no part of a line has arrived. */
  get isBetween(): boolean {
    return this.#have === 0 && this.#line === null
  }

  /** Passes on the lines that are complete, with the bytes that follow them. */
  read(chunk: Buffer, pass: (line: string, body: Buffer) => void): void {
    let at = 0
    while (at < chunk.length) {
      at = this.#line === null ? this.#readLine(chunk, at, pass) : this.#readBody(chunk, at, this.#line, pass)
    }
  }

  #readLine(chunk: Buffer, at: number, pass: (line: string, body: Buffer) => void): number {
    const end = chunk.indexOf(lineFeed, at)
    const until = end === -1 ? chunk.length : end + 1
    if (this.#have + until - at > this.#held.length) {
      throw new ServerFault("RESPONSE_TOO_LARGE", "the server sends a line that is too long")
    }
    this.#have += chunk.copy(this.#held, this.#have, at, until)
    if (end === -1) return until
    const length = this.#have - lineEnd.length
    this.#have = 0
    if (length < 0 || !this.#held.subarray(length, length + 2).equals(lineEnd)) {
      throw new ServerFault("PROTOCOL_ERROR", "the server sends a line that does not end as the protocol says")
    }
    const line = this.#held.toString("utf8", 0, length)
    const follows = this.#begin(line)
    if (follows === null) {
      pass(line, nothing)
    } else {
      this.#line = line
      this.#dropping = follows > this.#longestKept ? follows : 0
      this.#body = Buffer.allocUnsafe(follows - this.#dropping + lineEnd.length)
    }
    return until
  }

  #readBody(chunk: Buffer, at: number, line: string, pass: (line: string, body: Buffer) => void): number {
    if (this.#dropping > 0) {
      const dropped = Math.min(this.#dropping, chunk.length - at)
      this.#dropping -= dropped
      return at + dropped
    }
    const body = this.#body
    const part = chunk.copy(body, this.#have, at)
    this.#have += part
    if (this.#have < body.length) return at + part
    this.#have = 0
    this.#line = null
    this.#body = nothing
    const kept = body.subarray(0, -lineEnd.length)
    if (!body.subarray(kept.length).equals(lineEnd)) {
      throw new ServerFault("PROTOCOL_ERROR", "the server sends more bytes than it has announced")
    }
    pass(line, kept)
    return at + part
  }
}
