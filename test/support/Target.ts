import { createServer, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { portsOf } from "./Peers.ts"
import { now, patience } from "./Waiting.ts"

/** One request as a target received it. */
export interface Received {
  readonly method: string
  /** The request target as sent. */
  readonly url: string
  /** Flat, as sent: name, value, name, value. */
  readonly rawHeaders: ReadonlyArray<string>
  /** By lower-case name; a repeated one is a list. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly body: Buffer
  /** When its first bytes arrived (Unix ms). */
  readonly at: number
  /** The sender's port, which identifies the sending process. */
  readonly port: number
  /** Completes when the sender aborts the request before it has the complete answer. */
  readonly abandoned: Promise<void>
}

export type Reply = (response: ServerResponse, request: Received) => void | Promise<void>

/** Answers 200 with this text. */
export const saying =
  (text: string): Reply =>
  (response) =>
    void response.writeHead(200, { "content-type": "text/plain" }).end(text)

/** Never answers. */
export const hanging: Reply = () => undefined

/** A server that receives deliveries or calls. It keeps the requests, and answers with `reply`. */
export class Target {
  readonly port: number
  readonly received: Array<Received> = []
  reply: Reply
  readonly #usual: Reply
  readonly #server: Server
  readonly #waiting = new Set<() => void>()
  #isClosed = false

  private constructor(server: Server, usual: Reply) {
    this.#server = server
    this.#usual = usual
    this.reply = usual
    this.port = (server.address() as AddressInfo).port
  }

  static async start(usual: Reply = saying("ok")): Promise<Target> {
    const server = createServer({ maxHeaderSize: 64 * 1024, keepAliveTimeout: 60_000 })
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      server.listen(0, "127.0.0.1", resolve)
    })
    const target = new Target(server, usual)
    server.on("request", (message, response) => {
      const at = now()
      const chunks: Array<Buffer> = []
      const abandoned = new Promise<void>((resolve) =>
        response.once("close", () => {
          if (!response.writableFinished) resolve()
        })
      )
      message.on("data", (chunk: Buffer) => chunks.push(chunk))
      message.on("error", () => {
        // Aborted by the sender: the request does not count as received.
      })
      message.on("end", () => {
        const received: Received = {
          method: message.method ?? "",
          url: message.url ?? "",
          rawHeaders: message.rawHeaders,
          headers: byName(message.rawHeaders),
          body: Buffer.concat(chunks),
          at,
          port: message.socket.remotePort ?? 0,
          abandoned
        }
        target.received.push(received)
        // What a reply still waits for when its test is over fails no other test.
        Promise.resolve(target.reply(response, received)).catch((error: unknown) => {
          if (!target.#isClosed) throw error
        })
        for (const look of target.#waiting) look()
      })
    })
    return target
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Empties the record and restores the usual answer. */
  reset(): void {
    this.received.length = 0
    this.reply = this.#usual
  }

  /** The first `count` requests, once that many have been received. */
  next(count = 1, patienceMs = patience): Promise<ReadonlyArray<Received>> {
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

  /** The requests that came over connections that this process has open now. */
  from(pid: number): ReadonlyArray<Received> {
    const ports = portsOf(pid, this.port)
    if (ports === null) throw new Error("this system does not tell which process a connection belongs to")
    return this.received.filter(({ port }) => ports.has(port))
  }

  close(): Promise<void> {
    this.#isClosed = true
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
