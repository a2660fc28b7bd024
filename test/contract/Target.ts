import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** One delivery as the target received it. */
export interface Received {
  readonly method: string
  /** The request target, as it was sent. */
  readonly url: string
  /** Flat, as sent: name, value, name, value. */
  readonly rawHeaders: ReadonlyArray<string>
  /** By lower-case name; a repeated one is a list. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly body: Buffer
}

export type Reply = (response: ServerResponse, delivery: Received) => void

const ok: Reply = (response) => void response.writeHead(200, { "content-type": "text/plain" }).end("ok")

/** A destination's server: keeps what it receives and answers 200, or what `reply` says. */
export class Target {
  readonly origin: string
  readonly received: Array<Received> = []
  reply: Reply = ok
  readonly #server: Server
  readonly #waiting = new Set<() => void>()

  private constructor(server: Server) {
    this.#server = server
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(): Promise<Target> {
    const server = createServer({ maxHeaderSize: 64 * 1024 })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
    const target = new Target(server)
    server.on("request", (message, response) => {
      const chunks: Array<Buffer> = []
      message.on("data", (chunk: Buffer) => chunks.push(chunk))
      message.on("end", () => {
        const delivery: Received = {
          method: message.method ?? "",
          url: message.url ?? "",
          rawHeaders: message.rawHeaders,
          headers: byName(message.rawHeaders),
          body: Buffer.concat(chunks)
        }
        target.received.push(delivery)
        target.reply(response, delivery)
        for (const look of target.#waiting) look()
      })
    })
    return target
  }

  /** Back to an empty record and answering 200. */
  reset(): void {
    this.received.length = 0
    this.reply = ok
  }

  /** The first `count` deliveries, when there are that many. */
  next(count = 1, patienceMs = 8_000): Promise<ReadonlyArray<Received>> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(look)
      }
      const look = (): void => {
        if (this.received.length < count) return
        end()
        resolve(this.received.slice(0, count))
      }
      const timer = setTimeout(() => {
        end()
        reject(new Error(`${this.received.length} of ${count} deliveries within ${patienceMs} ms`))
      }, patienceMs)
      this.#waiting.add(look)
      look()
    })
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

const byName = (raw: ReadonlyArray<string>): Record<string, string | Array<string>> => {
  const headers: Record<string, string | Array<string>> = Object.create(null) as Record<string, string | Array<string>>
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    const known = headers[name]
    const value = raw[i + 1]!
    if (known === undefined) headers[name] = value
    else if (typeof known === "string") headers[name] = [known, value]
    else known.push(value)
  }
  return headers
}
