import { createServer, type Server, type Socket } from "node:net"
import { createServer as createHttpServer, type Server as HttpServer } from "node:http"
import type { AddressInfo } from "node:net"
import { portsOf } from "../faults/Peers.ts"

/** A delivery as the target saw it. */
export interface Arrival {
  /** The path of the request, without the slash in front. */
  readonly key: string
  readonly eventId: string
  /** Unix ms. */
  readonly at: number
  /** The sender's port: by it the process can be told that it came from. */
  readonly port: number
}

/** A target of deliveries that answers at once with 200 and remembers what came when. */
export class Receiver {
  readonly arrivals: Array<Arrival> = []
  readonly #server: HttpServer

  private constructor() {
    this.#server = createHttpServer((request, response) => {
      this.arrivals.push({
        key: (request.url ?? "/").slice(1),
        eventId: String(request.headers["x-gateway-event-id"]),
        at: performance.timeOrigin + performance.now(),
        port: request.socket.remotePort ?? 0
      })
      request.resume().once("end", () => response.end())
    })
    this.#server.keepAliveTimeout = 60_000
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver()
    await listen(receiver.#server)
    return receiver
  }

  get origin(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`
  }

  /** Those of the arrivals that came over connections which this process has open now. */
  from(pid: number): ReadonlyArray<Arrival> {
    const ports = portsOf(pid, portOf(this.#server))
    if (ports === null) throw new Error("this system does not tell which process a connection belongs to")
    return this.arrivals.filter(({ port }) => ports.has(port))
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** A target that takes connections and never says a word. */
export class Silent {
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  private constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.add(socket)
      socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket))
      socket.resume()
    })
  }

  static async start(): Promise<Silent> {
    const silent = new Silent()
    await listen(silent.#server)
    return silent
  }

  get origin(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

const listen = (server: Server): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once("error", reject)
    server.listen(0, "127.0.0.1", resolve)
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port
