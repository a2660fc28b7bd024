import { IncomingMessage, type ServerResponse } from "node:http"
import { leaveOpen } from "./NodeInternals.ts"
import { type Refusal, refusal, refuseOnWire } from "./Refusal.ts"

/**
 * A body may come in this many pieces, and in one more for each `bytesAPiece` bytes. A piece costs one to two microseconds to
 * take off the wire however little is in it, and 10 MiB could be ten million of them. The first number is for senders that
 * write their JSON token by token; whoever does so for longer has to gather what it sends. Fewer would save little: the
 * parser ends what it has read, up to 64 KiB, which can be 11,000 pieces.
 */
const freePieces = 4_096
const bytesAPiece = 64

/**
 * A sender may be slow, but not idle: in each ten seconds of a body that has not ended, 10 KiB have to come. Web servers in use
 * ask for a quarter to a half of that and wait for 5 to 20 s (ASP.NET Core: 240 B/s, Apache: 500 B/s); the slowest links that
 * send webhooks do better than any of them.
 */
const paceWindowMs = 10_000
const minBytesAWindow = 10 * 1024

/** What is read of a body that nobody wants, so that a sender that writes before it reads gets its answer. */
const maxDiscarded = 256 * 1024
/** How long after the answer the rest of such a body may take; with it, the connection is good for another request. */
const lingerMs = 1_000

const tooManyPieces = refusal("PAYLOAD_TOO_LARGE", "the body comes in too many pieces that are too small")
const tooSlow = refusal("REQUEST_TIMEOUT", "the body comes too slowly")

/** The requests of one server whose bodies are not complete. */
export class Arriving {
  readonly #messages = new Set<FramedMessage>()

  begin(message: FramedMessage): void {
    this.#messages.add(message)
    message.arriveAt(this)
  }

  end(message: FramedMessage): void {
    this.#messages.delete(message)
  }

  /** Refuses those that are too slow. */
  sweep(now: number): void {
    for (const message of this.#messages) message.pace(now)
  }
}

/**
 * A request that minds how its body comes, for whoever reads it: what is bounded here is bounded for the doors, the control
 * API, and for bodies that nobody reads.
 */
export class FramedMessage extends IncomingMessage {
  #arriving: Arriving | null = null
  #pieces = 0
  #bytes = 0
  #discarding = false
  /** Infinity: the clock has not been looked at yet. */
  #windowFrom = Infinity
  #windowBytes = 0

  arriveAt(arriving: Arriving): void {
    this.#arriving = arriving
  }

  /** Nobody wants the rest of the body. It may still come, or else the connection ends soon after `response`. */
  discard(response: ServerResponse): void {
    this.#discarding = true
    this.resume()
    response.prependOnceListener("finish", () => {
      if (this.complete) return
      // Node would close now if the answer says so, which resets a connection with unread bytes, and the answer is lost.
      const isLast = leaveOpen(response)
      const isOver = (): boolean => this.complete && !isLast
      const cut = (): void => void (isOver() || this.socket.destroy())
      // Not at once: what came along with the headers is read after they were answered.
      setImmediate(() => void (isOver() || setTimeout(cut, lingerMs).unref()))
    })
  }

  /** Called now and then while the body has not ended. */
  pace(now: number): void {
    if (this.#windowFrom === Infinity) this.#windowFrom = now
    if (now - this.#windowFrom < paceWindowMs) return
    // Unread bytes: it is the gateway that is slow.
    if (this.#bytes - this.#windowBytes < minBytesAWindow && this.readableLength === 0) return this.#refuse(tooSlow)
    this.#windowFrom = now
    this.#windowBytes = this.#bytes
  }

  /** Called by the parser with each piece of the body. */
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
    if (!this.#discarding) return super.push(piece)
    if (this.#bytes > maxDiscarded) this.socket.pause()
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
    // Pieces that were read with this one are still to come.
    this.push = refusePiece
    refuseOnWire(this.socket, why, this)
  }
}

const refusePiece = (): boolean => false
