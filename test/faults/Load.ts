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

/** At most this many requests without an answer are under way at the same time. */
const maxOutstanding = 1_000
const tickMs = 10

/**
 * Senders that post at a constant rate, whether or not they are answered, over all sources in turn. They do not repeat refused requests, because this
 * test examines the answers.
 */
export class Load {
  sent: Array<Sent> = []
  readonly #routes: ReadonlyArray<Route>
  readonly #pool: Pool
  readonly #perSecond: number
  readonly #lines: number
  #n = 0
  /** How often the load was started. It is part of the group's name, so that no group spans two rounds. */
  #starts = 0
  #outstanding = 0
  #timer: NodeJS.Timeout | null = null

  /**
   * `perSecond`: requests a second to all sources together. `lines`: the number of ordering keys of a source whose connections keep an order; low
   * enough that each key sometimes has a waiting event.
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

  /** Stops sending. Completes when every request has been answered or given up. */
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
