import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type { TLSSocket } from "node:tls"
import type { Guard } from "@tidegate/egress/Egress"
import { ServerFault, ServerFrames } from "./ServerFrames.ts"

/** The message that asks for TLS: its length, and a number that is no version. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const yes = 0x53
const no = 0x4e

/** A connection that was ended in good manners is gone after (ms), whatever its other side does. */
const lastWords = 1_000

export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** Verified against the host; else in the clear. */
  readonly tls: boolean
}

/**
 * A connection to a PostgreSQL server: opened by the guard, encrypted where that is wanted, and bounded. Who speaks over it sees
 * the protocol in the clear, and of what the server says only what it may.
 */
export class PostgresStream extends Duplex {
  readonly #frames: ServerFrames
  /** The connection itself, under TLS too. */
  readonly #raw: Socket
  /** Where the protocol is spoken; null: the server has not been found, or has not agreed. */
  #socket: Socket | null = null
  /** What waits for it. */
  #first: (() => void) | null = null

  constructor(guard: Guard, { host, port, tls }: ServerAddress) {
    super({ allowHalfOpen: false })
    this.#frames = new ServerFrames(tls)
    const raw = guard.openSocket({ host, port })
    this.#raw = raw
    this.#watch(raw)
    raw.once("connect", () => {
      raw.setNoDelay(true)
      if (!tls) return this.#join(raw)
      raw.once("data", (answer: Buffer) => this.#agree(answer, () => guard.secure(raw, host)))
      raw.write(tlsRequest)
    })
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => this.destroy(error))
    socket.on("close", () => this.destroy())
  }

  #agree(answer: Buffer, secure: () => TLSSocket): void {
    // What is said before the server is known is shown to nobody; and more than the one byte could be anybody's.
    if (answer.length !== 1 || (answer[0] !== yes && answer[0] !== no)) {
      return void this.destroy(new ServerFault("PROTOCOL_ERROR", "the server does not answer whether it speaks TLS"))
    }
    if (answer[0] === no) {
      return void this.destroy(new ServerFault("ERR_SSL_WRONG_VERSION_NUMBER", "the server speaks no TLS"))
    }
    const socket = secure()
    this.#watch(socket)
    socket.once("secureConnect", () => this.#join(socket))
  }

  #join(socket: Socket): void {
    if (this.destroyed) return
    const pass = (message: Buffer): void => {
      if (!this.push(message)) socket.pause()
    }
    socket.on("data", (chunk: Buffer) => {
      if (this.destroyed) return
      try {
        this.#frames.read(chunk, pass)
      } catch (fault) {
        this.destroy(fault as Error)
      }
    })
    this.#socket = socket
    this.#first?.()
    this.#first = null
  }

  override _read(): void {
    this.#socket?.resume()
  }

  override _write(message: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#socket === null) {
      this.#first = () => this._write(message, encoding, done)
      return
    }
    this.#frames.told()
    this.#socket.write(message, done)
  }

  override _final(done: () => void): void {
    // Whoever does not read what it is told is not waited for.
    setTimeout(() => this.#raw.destroy(), lastWords).unref()
    if (this.#socket === null) this.#raw.destroy()
    else this.#socket.destroySoon()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.writableFinished) {
      this.#socket?.destroy()
      this.#raw.destroy()
    }
    done(error)
  }
}
