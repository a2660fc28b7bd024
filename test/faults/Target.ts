import { hash } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { now, sleep } from "../support/Waiting.ts"

/** A delivery that reached the target completely: one attempt of one event. */
export interface Arrival {
  readonly key: string
  readonly eventId: string
  readonly requestId: string
  readonly attempt: number
  /** The number in the body, which identifies the request in the load. Null if the body differs from the sent one. */
  readonly n: number | null
  /** What a transformation wrote into the body; null when it has written nothing. */
  readonly shaped: number | null
  readonly at: number
  /** The port it came from. */
  readonly port: number
  /** The status answered in full, or null when the target broke off or never ended its answer. */
  answered: number | null
  /** When the answer was over; Infinity while it is not. */
  endedAt: number
}

/** How the target answers a destination's deliveries: correctly, or in one of several wrong ways. */
export type Behaviour = "answer" | "fail" | "hang" | "reset" | "half" | "endless"

/** The share of deliveries to a flaky destination that fail, and the attempt of which none fails: chance alone would prolong every round. */
const flakyShare = 0.25
const steadyEvery = 3
/** Long enough that some deliveries are under way when a process is killed. */
const thinkMs = 15

/**
 * The server that all deliveries go to. It remembers every one. Whether a flaky delivery fails is decided by the event and
 * the attempt, so that a repeated delivery is answered as the first one was.
 */
export class Target {
  arrivals: Array<Arrival> = []
  readonly #server: Server
  readonly #behaviours = new Map<string, Behaviour>()
  /** Answers that the current behaviour holds back. */
  readonly #held = new Set<Socket>()
  #open = 0

  private constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response))
    this.#server.keepAliveTimeout = 60_000
  }

  static async start(): Promise<Target> {
    const target = new Target()
    await new Promise<void>((resolve) => target.#server.listen(0, "127.0.0.1", () => resolve()))
    return target
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Whether nothing has come or been answered for `forMs`. */
  isIdle(forMs: number): boolean {
    const last = this.arrivals.at(-1)?.at ?? 0
    return this.#open === 0 && now() - last >= forMs
  }

  behave(key: string, behaviour: Behaviour): void {
    this.#behaviours.set(key, behaviour)
  }

  /** Answers everything again, and breaks off the answers that it has held back. */
  heal(): void {
    this.#behaviours.clear()
    for (const socket of this.#held) socket.destroy()
    this.#held.clear()
  }

  /** Forgets what has arrived so far, and returns it. */
  take(): ReadonlyArray<Arrival> {
    const arrivals = this.arrivals
    this.arrivals = []
    return arrivals
  }

  async close(): Promise<void> {
    this.heal()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Array<Buffer> = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // The sender broke the request off, so it is not a delivery.
      return
    }
    const key = (request.url ?? "/").slice(1)
    const arrival: Arrival = {
      key,
      eventId: headerOf(request, "x-gateway-event-id"),
      requestId: headerOf(request, "x-gateway-request-id"),
      attempt: Number(headerOf(request, "x-gateway-attempt-count")),
      ...numbersIn(Buffer.concat(chunks)),
      at: now(),
      port: request.socket.remotePort ?? 0,
      answered: null,
      endedAt: Number.POSITIVE_INFINITY
    }
    this.arrivals.push(arrival)
    this.#open++
    response.once("close", () => {
      this.#open--
      arrival.endedAt = now()
    })
    await this.#answer(arrival, request, response)
  }

  async #answer(arrival: Arrival, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request
    switch (this.#behaviours.get(arrival.key) ?? "answer") {
      case "answer": {
        await sleep(thinkMs)
        return finish(arrival, response, isFlaky(arrival) ? 500 : 200)
      }
      case "fail":
        return finish(arrival, response, 503)
      case "hang":
        this.#held.add(socket)
        return
      case "reset":
        socket.resetAndDestroy()
        return
      case "half":
        response.writeHead(200, { "content-length": 1_000 })
        response.write("only the beginning of it", () => socket.destroy())
        return
      case "endless": {
        this.#held.add(socket)
        response.writeHead(200, { "content-type": "text/plain" })
        while (!response.destroyed) {
          response.write("and so on ")
          await sleep(200)
        }
        return
      }
    }
  }
}

const isFlaky = ({ attempt, eventId, key }: Arrival): boolean =>
  key.startsWith("flaky") && attempt % steadyEvery !== 0 && chance(`${eventId}/${attempt}`) < flakyShare

const finish = (arrival: Arrival, response: ServerResponse, status: number): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(`{"received":true}`)
  // This does not prove that the sender has read the answer, only that the target has sent it.
  response.once("finish", () => {
    arrival.answered = status
  })
}

const headerOf = (request: IncomingMessage, name: string): string => String(request.headers[name] ?? "")

const numbersIn = (body: Buffer): Pick<Arrival, "n" | "shaped"> => {
  try {
    const { n, shaped } = JSON.parse(body.toString()) as { n?: unknown; shaped?: unknown }
    return { n: typeof n === "number" ? n : null, shaped: typeof shaped === "number" ? shaped : null }
  } catch {
    return { n: null, shaped: null }
  }
}

/** A number in [0, 1) that is always the same for the same text. */
const chance = (text: string): number => hash("sha1", text, "buffer").readUInt32BE(0) / 2 ** 32
