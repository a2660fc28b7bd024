import { IncomingMessage, type ServerResponse } from "node:http"
import { leaveOpen } from "./NodeInternals.ts"
import { type Refusal, refusal, refuseOnWire } from "./Refusal.ts"

/**
 * A body may come in this many pieces, plus one for each `bytesAPiece` bytes. Reading a piece costs one to two microseconds, however small
 * it is, and 10 MiB could be ten million pieces. The first number allows senders that write their JSON token by token;
 * for longer bodies they have to buffer. A lower number would save little: the parser finishes what it has read, up to 64 KiB, which can be
 * 11,000 pieces.
 */
const freePieces = 4_096
const bytesAPiece = 64

/**
 * A sender may be slow but not idle: an incomplete body must receive 10 KiB in each ten seconds. Common web servers require
 * a quarter to a half of that and wait for 5 to 20 s (ASP.NET Core: 240 B/s, Apache: 500 B/s); the slowest links that send webhooks
 * are faster than any of these.
 */
const paceWindowMs = 10_000
const minBytesAWindow = 10 * 1024

/** Bytes that are read of an unwanted body, so that a sender that writes before it reads still gets its answer. */
const maxDiscarded = 256 * 1024
/** Milliseconds after the last answer of a connection in which its sender may read it. */
const lingerMs = 1_000

const tooManyPieces = refusal("PAYLOAD_TOO_LARGE", "the body comes in too many pieces that are too small")
const tooSlow = refusal("REQUEST_TIMEOUT", "the body comes too slowly")

/** The requests of one server whose bodies are incomplete. */
export class Arriving {
  readonly #messages = new Set<FramedMessage>()

  begin(message: FramedMessage): void {
    this.#messages.add(message)
    message.arriveAt(this)
  }

  end(message: FramedMessage): void {
    this.#messages.delete(message)
  }

  /** Refuses requests that are too slow. */
  sweep(now: number): void {
    for (const message of this.#messages) message.pace(now)
  }
}

/** A request that limits the framing and the pace of its body, whatever reads it: ingress, the control API, or nothing. */
export class FramedMessage extends IncomingMessage {
  #arriving: Arriving | null = null
  #pieces = 0
  #bytes = 0
  /** Bytes of the body at which nothing more of it is read; Infinity while the body is wanted. */
  #readTo = Infinity
  /** Start of the window; Infinity before the first check. */
  #windowFrom = Infinity
  #windowBytes = 0

  /** The id under which it is to be stored; null: it gets a new one. */
  get requestId(): string | null {
    return null
  }

  arriveAt(arriving: Arriving): void {
    this.#arriving = arriving
  }

  /**
   * Ignores the rest of the body. A short rest is read, at the pace of any body, and the connection can be reused. Otherwise
   * `response`, which has not begun, says that the connection ends: a sender whose bytes wait in a buffer would take it for free
   * and lose its next request.
   */
  discard(response: ServerResponse): void {
    // Some of it may have been read already, while it was not known whether the body is wanted.
    this.#readTo = this.#bytes + maxDiscarded
    if (!this.#endsSoon()) response.setHeader("connection", "close")
    this.resume()
    response.prependOnceListener("finish", () => {
      // Node would close now if the answer says so, which resets a connection with unread bytes, and the answer is lost.
      if (this.complete || !leaveOpen(response)) return
      // Delayed: bytes that came with the headers are read only after the answer.
      setImmediate(() => void setTimeout(() => void this.socket.destroy(), lingerMs).unref())
    })
  }

  /** Whether the body is known to end within the bytes that are read. One that waits for a `100 Continue` may never begin. */
  #endsSoon(): boolean {
    if (this.complete) return true
    const { expect, "content-length": length, "transfer-encoding": encoding } = this.headers
    if (expect !== undefined || encoding !== undefined) return false
    return Number(length ?? 0) <= this.#readTo
  }

  /** Called at intervals while the body is incomplete. */
  pace(now: number): void {
    if (this.#windowFrom === Infinity) this.#windowFrom = now
    if (now - this.#windowFrom < paceWindowMs) return
    // Unread bytes are buffered: the gateway is slow, not the sender.
    if (this.#bytes - this.#windowBytes < minBytesAWindow && this.readableLength === 0) return this.#refuse(tooSlow)
    this.#windowFrom = now
    this.#windowBytes = this.#bytes
  }

  /** The parser calls it with each piece of the body. */
  override push(piece: Buffer | null): boolean {
    if (this.#arriving === null) return super.push(piece)
    if (piece === null) {
      this.#end()
      return super.push(null)
    }
    this.#pieces++
    this.#bytes += piece.length
    if (this.#pieces > freePieces + this.#bytes / bytesAPiece) {
      this.#refuse(tooManyPieces)
      return false
    }
    if (this.#readTo === Infinity) return super.push(piece)
    if (this.#bytes > this.#readTo) this.socket.pause()
    return true
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#end()
    super._destroy(error, done)
  }

  #end(): void {
    this.#arriving?.end(this)
    this.#arriving = null
  }

  #refuse(why: Refusal): void {
    this.#end()
    // The parser still delivers pieces from the same read.
    this.push = refusePiece
    refuseOnWire(this.socket, why, this)
  }
}

const refusePiece = (): boolean => false
