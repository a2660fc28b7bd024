import type { WebSocket } from "@effect/platform-node/NodeWS"

/** Bytes that one reader may be behind. */
export const maxUnsent = 1024 * 1024
/** Bytes that all readers of a process may be behind together: with more, whoever is behind at all is dropped. */
export const maxUnsentOfAll = 32 * 1024 * 1024

/** Frames that a reader may send between two pings: it has nothing to say but pongs, and pings of its own. */
const maxIncoming = 16

/** What all streams of a process hold. */
export interface Held {
  bytes: number
}

/**
 * One reader's WebSocket, bounded: whoever does not take what he is sent is dropped, and nothing is kept for him; whoever
 * says something is let go; whoever is silent for the time between two pings is taken for dead.
 */
export class StreamSocket {
  #unsent = 0
  #incoming = 0
  #isAlive = true
  readonly #socket: WebSocket
  readonly #held: Held

  constructor(socket: WebSocket, held: Held) {
    this.#socket = socket
    this.#held = held
    // What is wrong on the wire ends the connection; there is nobody to tell.
    socket.on("error", () => {})
    socket.on("message", () => this.close(1008, "nothing is expected to be said here"))
    socket.on("ping", () => this.#count())
    socket.on("pong", () => {
      this.#isAlive = true
      this.#count()
    })
    socket.once("close", () => {
      held.bytes -= this.#unsent
      this.#unsent = 0
    })
  }

  /** Sends a frame of text, or drops the reader who is too far behind to be sent one. */
  send(frame: Buffer): void {
    if (this.#socket.readyState !== 1) return
    const isTooSlow = this.#unsent > maxUnsent || (this.#unsent > 0 && this.#held.bytes + frame.length > maxUnsentOfAll)
    if (isTooSlow) return this.#socket.terminate()
    this.#add(frame.length)
    this.#socket.send(frame, { binary: false, fin: true }, () => this.#add(-frame.length))
  }

  /** Asks whether the reader is there; drops the one who has not answered since the last time. */
  ping(): void {
    if (!this.#isAlive) return this.#socket.terminate()
    this.#isAlive = false
    this.#incoming = 0
    if (this.#socket.readyState === 1) this.#socket.ping()
  }

  /** Ends the stream; a reader who does not answer that is cut off. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  drop(): void {
    this.#socket.terminate()
  }

  #add(bytes: number): void {
    // What is told of a closed one has been taken off with it.
    if (this.#socket.readyState > 1) return
    this.#unsent += bytes
    this.#held.bytes += bytes
  }

  #count(): void {
    if (++this.#incoming > maxIncoming) this.#socket.terminate()
  }
}
