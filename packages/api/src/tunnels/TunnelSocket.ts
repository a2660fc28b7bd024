import type { WebSocket } from "@effect/platform-node/NodeWS"
import type { Held } from "../streams/StreamSocket.ts"

/** Bytes that may wait for one client, and for all clients of a process, before no more jobs are requested. */
const maxUnsent = 8 * 1024 * 1024
const maxUnsentOfAll = 64 * 1024 * 1024
/** A frame is sent in pieces, one after the other, with pings in between, so that a slow client does not count as dead. */
const piece = 256 * 1024
/** The number of the gateway's pings (40 s) that a frame may wait to be taken: by then its delivery has timed out. */
const maxPingsBehind = 4
/** Unexpected frames between two pings of the gateway. */
const maxUnexpected = 70

/** The WebSocket of one client. No jobs are requested while it is behind, so its memory is limited. */
export class TunnelSocket {
  readonly #socket: WebSocket
  readonly #held: Held
  readonly #queue: Array<Buffer> = []
  readonly #drained: () => void
  #sent = 0
  #isSending = false
  #unsent = 0
  #isAlive = true
  #unexpected = 0
  /** Frames that were queued, and frames that were taken. */
  #framed = 0
  #taken = 0
  /** The number of the next frame that the client has to take, and the number of pings for which that frame has waited. */
  #awaited = 0
  #pingsBehind = 0

  /** `say` is called with each text frame; `drained` when there is capacity again. */
  constructor(socket: WebSocket, held: Held, say: (frame: Buffer, tunnel: TunnelSocket) => void, drained: () => void) {
    this.#socket = socket
    this.#held = held
    this.#drained = drained
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      this.#isAlive = true
      if (isBinary) this.unexpected()
      else say(data, this)
    })
    socket.on("ping", () => {
      this.#isAlive = true
      this.unexpected()
    })
    socket.on("pong", () => {
      this.#isAlive = true
      this.unexpected()
    })
    socket.once("close", () => {
      held.bytes -= this.#unsent
      this.#unsent = 0
      this.#queue.length = 0
    })
  }

  /** The number of bytes that may be sent to the client now. */
  get room(): number {
    return Math.max(0, Math.min(maxUnsent - this.#unsent, maxUnsentOfAll - this.#held.bytes))
  }

  send(frame: Buffer): void {
    if (this.#socket.readyState !== 1) return
    this.#unsent += frame.length
    this.#held.bytes += frame.length
    this.#queue.push(frame)
    this.#framed++
    if (!this.#isSending) this.#sendPiece()
  }

  #sendPiece(): void {
    const frame = this.#queue[0]
    this.#isSending = frame !== undefined
    if (frame === undefined) return
    const end = Math.min(frame.length, this.#sent + piece)
    const part = frame.subarray(this.#sent, end)
    this.#sent = end
    const isLast = end === frame.length
    this.#socket.send(part, { binary: false, fin: isLast }, (error) => {
      // The bytes of a closed one were subtracted when it closed.
      if (error != null || this.#socket.readyState > 1) return
      this.#unsent -= part.length
      this.#held.bytes -= part.length
      this.#isAlive = true
      if (isLast) {
        this.#queue.shift()
        this.#taken++
        this.#sent = 0
        this.#drained()
      }
      this.#sendPiece()
    })
  }

  /** The client has sent something that was not expected. */
  unexpected(): void {
    if (++this.#unexpected > maxUnexpected) this.close(1008, "too much was said that nobody waits for")
  }

  /**
   * Checks that the client is alive. Drops it when it has neither sent nor taken anything since the last time, or takes too
   * little to be of use.
   */
  ping(): void {
    if (this.#taken >= this.#awaited) {
      this.#awaited = this.#framed
      this.#pingsBehind = 0
    }
    if (!this.#isAlive || ++this.#pingsBehind > maxPingsBehind) return this.#socket.terminate()
    this.#isAlive = false
    this.#unexpected = 0
    if (this.#socket.readyState === 1) this.#socket.ping()
  }

  /** Ends the tunnel; a client that does not confirm is cut off. */
  close(code: number, reason: string): void {
    this.#socket.close(code, reason)
  }

  drop(): void {
    this.#socket.terminate()
  }
}
