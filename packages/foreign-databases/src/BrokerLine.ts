import type { Socket } from "node:net"
import { SessionFailure } from "@tidegate/connectors/Failure"
import { errorCodeOf, errorMessageOf } from "@tidegate/egress/AttemptErrorCode"
import type { Guard } from "@tidegate/egress/Egress"
import { ServerFault } from "./ServerFrames.ts"

/** A connection that was ended normally is destroyed after this time (ms), even if the broker does not close it. */
const lastWords = 1_000

/** Bytes that a broker may send before the first message, and for each message. */
const perMessage = 64 * 1024
/** The maximum of what it may send without being asked again. */
const maxAllowed = 16 * 1024 * 1024

export interface LineAddress {
  readonly host: string
  readonly port: number
  /** True: TLS, verified against the host; false: plain text. */
  readonly tls: boolean
  /** True: TLS begins with `secure`, after the server has agreed in plain text. */
  readonly tlsLater?: boolean
}

export interface LineEvents {
  /** Called once the line carries the protocol: again after `secure`. */
  readonly opened: () => void
  /** May throw: a `ServerFault`, or a `RangeError` for data that is cut off. Both end the line. */
  readonly read: (chunk: Buffer) => void
  /** Called once, however the line ends. */
  readonly ended: (failure: SessionFailure) => void
}

const failed = (code: SessionFailure["code"], message: string): SessionFailure =>
  new SessionFailure({ code, message, final: false, broken: true })

/** Why a line has ended, or what came over it is of no use. */
export const failureOf = (error: unknown): SessionFailure => {
  if (error instanceof ServerFault) return failed(error.code, error.message)
  if (error instanceof RangeError) return failed("PROTOCOL_ERROR", "the server does not keep to the protocol")
  if (error instanceof Error) return failed(errorCodeOf(error), errorMessageOf(error))
  return failed("SOCKET_CLOSED", "the server has hung up")
}

/**
 * A connection to a message broker: opened by the guard, encrypted if requested, and limited. A broker may send a fixed number of bytes for
 * each message that it gets, so one that sends without end is cut off.
 */
export class BrokerLine {
  readonly #guard: Guard
  readonly #host: string
  readonly #raw: Socket
  /** The socket that carries the protocol: the TCP socket, or TLS over it. */
  #socket: Socket
  readonly #events: LineEvents
  #allowed = perMessage
  /** Whether the protocol has begun. */
  #isJoined = false
  #isOver = false

  constructor(guard: Guard, { host, port, tls, tlsLater = false }: LineAddress, events: LineEvents) {
    this.#guard = guard
    this.#host = host
    this.#events = events
    this.#raw = guard.openSocket({ host, port })
    this.#socket = this.#raw
    this.#watch(this.#raw)
    this.#raw.once("connect", () => {
      this.#raw.setNoDelay(true)
      if (tls && !tlsLater) this.secure()
      else this.#join()
    })
  }

  /** Encrypts the line from here on. */
  secure(): void {
    this.#raw.removeAllListeners("data")
    this.#socket = this.#guard.secure(this.#raw, this.#host)
    this.#watch(this.#socket)
    this.#socket.once("secureConnect", () => this.#join())
  }

  get isOpen(): boolean {
    return !this.#isOver
  }

  /** Sends a message that the broker answers. `answer`: how many bytes the answer may have beside the usual number. */
  ask(parts: ReadonlyArray<Uint8Array>, answer: number): void {
    this.#allowed = Math.min(this.#allowed + perMessage + answer, maxAllowed)
    this.write(parts)
  }

  /** The broker may send so many bytes more. What it has not used of earlier grants does not add up without limit. */
  grant(bytes: number): void {
    this.#allowed = Math.min(this.#allowed, maxAllowed) + bytes
  }

  /** Reads nothing more, so that the broker has to wait. */
  pause(): void {
    this.#socket.pause()
  }
  resume(): void {
    this.#socket.resume()
  }

  /** Sends the parts together, without copying them. `sent` is called when the system has the last one, or the line has ended. */
  write(parts: ReadonlyArray<Uint8Array>, sent?: () => void): void {
    if (this.#isOver) return
    this.#socket.cork()
    for (const [i, part] of parts.entries()) this.#socket.write(part, i === parts.length - 1 ? sent : undefined)
    this.#socket.uncork()
  }

  /** Ends the line normally, with these last words. The broker is not waited for. */
  close(words: Uint8Array, failure: SessionFailure): void {
    if (this.#isOver) return
    if (this.#isJoined) {
      this.#socket.end(words)
      setTimeout(() => this.#destroy(), lastWords).unref()
    } else {
      this.#destroy()
    }
    this.#over(failure)
  }

  fail(error: unknown): void {
    this.#destroy()
    this.#over(failureOf(error))
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => this.fail(error))
    socket.on("close", () => this.fail(null))
  }

  #join(): void {
    if (this.#isOver) return
    this.#isJoined = true
    this.#socket.on("data", (chunk: Buffer) => {
      // What comes after the last words is read and dropped, so that the broker can finish.
      if (this.#isOver) return
      try {
        this.#events.read(chunk)
        // Counted after it is read: what the broker says in it may allow what follows in it.
        this.#allowed -= chunk.length
        if (this.#allowed < 0) {
          throw new ServerFault("RESPONSE_TOO_LARGE", "the server says more than a message is answered by")
        }
      } catch (fault) {
        this.fail(fault)
      }
    })
    this.#events.opened()
  }

  #destroy(): void {
    this.#socket.destroy()
    this.#raw.destroy()
  }

  #over(failure: SessionFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#events.ended(failure)
  }
}
