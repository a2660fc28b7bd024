import { Pool } from "undici"
import type { Kind, Route } from "./Routes.ts"
import { now, waitUntil } from "../support/Waiting.ts"

/** A request of the load, and how it was answered. */
export interface Sent {
  /** Its number, which is in its body. */
  readonly n: number
  readonly sourceId: string
  readonly kind: Kind
  readonly sentAt: number
  answeredAt: number | null
  /** Null: no answer came. */
  status: number | null
  /** Of an acknowledged request. */
  requestId: string | null
  retryAfter: string | null
  failure: string | null
}

export interface Rate {
  readonly perSecond: number
  readonly lines: number
}

/** More than this many unanswered requests are not sent on top of each other. */
const maxOutstanding = 1_000
const tickMs = 10

/**
 * Senders that post at a constant rate, whether or not they are answered, over all sources in turn. They do not repeat what
 * is refused: what matters here is how they are answered.
 */
export class Load {
  sent: Array<Sent> = []
  readonly #routes: ReadonlyArray<Route>
  readonly #pool: Pool
  readonly #perSecond: number
  readonly #lines: number
  #n = 0
  /** How often it was started: no group spans two rounds. */
  #starts = 0
  #outstanding = 0
  #timer: NodeJS.Timeout | null = null

  /**
   * `perSecond`: requests, over all sources. `lines`: of a source whose connections keep an order, few enough that each has an event
   * waiting now and then.
   */
  constructor(origin: string, routes: ReadonlyArray<Route>, { lines, perSecond }: Rate) {
    this.#routes = routes
    this.#perSecond = perSecond
    this.#lines = lines
    this.#pool = new Pool(origin, { connections: 128, headersTimeout: 20_000, bodyTimeout: 20_000 })
  }

  get acknowledged(): number {
    return this.sent.reduce((count, sent) => count + (sent.requestId === null ? 0 : 1), 0)
  }

  start(): void {
    this.sent = []
    this.#starts++
    const startedAt = now()
    let due = 0
    this.#timer = setInterval(() => {
      const owed = Math.floor(((now() - startedAt) / 1_000) * this.#perSecond)
      for (; due < owed; due++) if (this.#outstanding < maxOutstanding) void this.#send()
    }, tickMs)
  }

  /** Sends no more; completes when everything sent has been answered or given up. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    await waitUntil("the senders have their answers", () => this.#outstanding === 0, { patienceMs: 45_000 })
  }

  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#pool.destroy()
  }

  async #send(): Promise<void> {
    const n = ++this.#n
    const route = this.#routes[n % this.#routes.length]!
    const turn = Math.floor(n / this.#routes.length)
    const kind: Kind = turn % 3 === 0 ? "note" : "order"
    // Two requests of a source, one after the other, are of one group.
    const group = `${this.#starts}/${route.sourceId}/${Math.floor(turn / 2)}`
    const sent: Sent = {
      n,
      sourceId: route.sourceId,
      kind,
      sentAt: now(),
      answeredAt: null,
      status: null,
      requestId: null,
      retryAfter: null,
      failure: null
    }
    this.sent.push(sent)
    this.#outstanding++
    try {
      const { body, headers, statusCode } = await this.#pool.request({
        method: "POST",
        path: `/e/${route.sourceId}`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ n, kind, group, line: turn % this.#lines, padding: "x".repeat(50 + ((n * 37) % 900)) })
      })
      const text = await body.text()
      sent.status = statusCode
      sent.retryAfter = typeof headers["retry-after"] === "string" ? headers["retry-after"] : null
      if (statusCode >= 200 && statusCode < 300) {
        sent.requestId = String((JSON.parse(text) as { request_id?: unknown }).request_id)
      } else sent.failure = text.slice(0, 200)
      sent.answeredAt = now()
    } catch (error) {
      sent.status = null
      sent.requestId = null
      sent.failure = error instanceof Error ? error.message : String(error)
    } finally {
      this.#outstanding--
    }
  }
}
