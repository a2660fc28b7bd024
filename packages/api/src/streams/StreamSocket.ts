import type { WebSocket } from "@effect/platform-node/NodeWS"

/** Bytes that may wait for one reader. */
export const maxUnsent = 1024 * 1024
/** Bytes that may wait for all readers of a process. Above it, every reader with waiting bytes is dropped. */
export const maxUnsentOfAll = 32 * 1024 * 1024

/** Frames that a reader may send between two pings: only pongs, and pings of its own, are expected. */
const maxIncoming = 16

/** What waits for the readers of all streams of a process. */
export interface Held {
  bytes: number
}

/**
 * The WebSocket of one reader, with limits: a reader that does not take its data is dropped, and nothing is kept for it; a reader
 * that sends data is disconnected; a reader that is silent from one ping to the next counts as dead.
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
    // A protocol error ends the connection; nobody has to be notified.
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

  /** Sends a text frame, or drops the reader when it is too far behind. */
  send(frame: Buffer): void {
    if (this.#socket.readyState !== 1) return
    const isTooSlow = this.#unsent > maxUnsent || (this.#unsent > 0 && this.#held.bytes + frame.length > maxUnsentOfAll)
    if (isTooSlow) return this.#socket.terminate()
    this.#add(frame.length)
    this.#socket.send(frame, { binary: false, fin: true }, () => this.#add(-frame.length))
  }

  /** Checks that the reader is alive; drops one that has not answered the previous ping. */
  ping(): void {
    if (!this.#isAlive) return this.#socket.terminate()
    this.#isAlive = false
    this.#incoming = 0
    if (this.#socket.readyState === 1) this.#socket.ping()
  }

  /** Ends the stream; a reader that does not confirm is cut off. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  drop(): void {
    this.#socket.terminate()
  }

  #add(bytes: number): void {
    // The bytes of a closed one were subtracted when it closed.
    if (this.#socket.readyState > 1) return
    this.#unsent += bytes
    this.#held.bytes += bytes
  }

  #count(): void {
    if (++this.#incoming > maxIncoming) this.#socket.terminate()
  }
}
