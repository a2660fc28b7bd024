import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import type { TLSSocket } from "node:tls"
import type { Guard } from "@tidegate/egress/Egress"
import { ServerFault, ServerFrames } from "./ServerFrames.ts"

/** The SSLRequest message: its length, and a code that is no protocol version. */
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const yes = 0x53
const no = 0x4e

/** A connection that was ended normally is destroyed after this time (ms), even if the server does not close it. */
const lastWords = 1_000

export interface ServerAddress {
  readonly host: string
  readonly port: number
  /** True: TLS, verified against the host; false: plain text. */
  readonly tls: boolean
}

/**
 * A connection to a PostgreSQL server: opened by the guard, encrypted if requested, and limited. Its user sees
 * the protocol in plain text, and only permitted messages of the server.
 */
export class PostgresStream extends Duplex {
  readonly #frames: ServerFrames
  /** The TCP socket, also if TLS runs over it. */
  readonly #raw: Socket
  /** The socket that carries the protocol; null until the server is connected and TLS is agreed. */
  #socket: Socket | null = null
  /** The first write, which waits for that socket. */
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
    // Nothing of an unverified server is passed on. More than the one byte may have been injected by an attacker before TLS.
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
    this.#frames.sent()
    this.#socket.write(message, done)
  }

  override _final(done: () => void): void {
    // A server that does not read what it is sent is not waited for.
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
