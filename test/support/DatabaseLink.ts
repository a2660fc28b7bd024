import { createServer, connect, type Server, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { freePort } from "./Ports.ts"

export interface LinkOptions {
  /** Receives the bytes that the server sends. May change them, but not their number. */
  readonly rewrite?: (answer: Buffer) => Buffer
  /** Called for each connection. Returns a function that receives the bytes that the gateway sends on it. */
  readonly reader?: () => (sent: Buffer) => void
}

/**
 * The connection of one gateway to its database, which a test can cut. Then connections end and new ones are refused, as when the
 * server is down. The database itself is shared and continues.
 */
export class DatabaseLink {
  /** The URL to give to the gateway. */
  readonly url: string
  #server: URL
  readonly #port: number
  readonly #open = new Set<Socket>()
  readonly #options: LinkOptions
  #listener: Server
  #isSilent = false

  private constructor(server: URL, listener: Server, options: LinkOptions) {
    this.#server = server
    this.#options = options
    this.#listener = listener
    this.#port = (listener.address() as AddressInfo).port
    const url = new URL(server)
    url.host = `127.0.0.1:${this.#port}`
    this.url = url.href
    listener.on("connection", this.#join)
  }

  static async to(databaseUrl: string, options: LinkOptions = {}): Promise<DatabaseLink> {
    return new DatabaseLink(new URL(databaseUrl), await listen(await freePort()), options)
  }

  readonly #join = (near: Socket): void => {
    const { reader, rewrite } = this.#options
    if (reader !== undefined) near.on("data", reader())
    const far = connect(Number(this.#server.port), this.#server.hostname)
    for (const [socket, other] of [
      [near, far],
      [far, near]
    ] as const) {
      this.#open.add(socket)
      socket.setNoDelay(true)
      socket.on("error", () => other.destroy())
      socket.on("close", () => {
        this.#open.delete(socket)
        other.destroy()
      })
      if (socket === near || rewrite === undefined) socket.pipe(other)
      if (this.#isSilent) socket.pause()
    }
    if (rewrite !== undefined) far.on("data", (answer: Buffer) => near.write(rewrite(answer)))
  }

  /**
   * Holds back all bytes and ends no connection, as when packets are dropped. They arrive when the link passes bytes again. Not for a link with
   * `rewrite`.
   */
  silence(): void {
    this.#isSilent = true
    for (const socket of this.#open) socket.pause()
  }

  /** Undoes `silence`. */
  speak(): void {
    this.#isSilent = false
    for (const socket of this.#open) socket.resume()
  }

  async cut(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()))
    for (const socket of this.#open) socket.destroy()
    await closed
  }

  /** New connections lead to this server from now on. Open ones stay. */
  lead(databaseUrl: string): void {
    this.#server = new URL(databaseUrl)
  }

  /** Does nothing if the link is not cut. */
  async mend(): Promise<void> {
    if (this.#listener.listening) return
    this.#listener = await listen(this.#port)
    this.#listener.on("connection", this.#join)
  }

  async close(): Promise<void> {
    if (this.#listener.listening) await this.cut()
  }
}

const listen = (port: number): Promise<Server> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(port, "127.0.0.1", () => resolve(server))
  })
