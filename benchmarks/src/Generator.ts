/** The sender. Open loop: at a fixed rate. Closed loop: as fast as requests are acknowledged, with a limited number in flight. */
import type { Histogram } from "hdr-histogram-js"
import { Pool } from "undici"
import { type Latency, makeHistogram, record, summarize } from "./Latency.ts"
import { makePayload, nowMicros } from "./Payload.ts"
import { serve } from "./Worker.ts"

/** The results of one sending phase. Times are microseconds of the shared monotonic clock. */
export interface Sent {
  readonly acknowledged: number
  /** Requests with an answer other than 2xx, or without an answer. */
  readonly refused: number
  /** The refusals with status 429 and Retry-After. */
  readonly limited: number
  /** The first refusal as text. */
  readonly refusal: string | null
  readonly startedAt: number
  readonly endedAt: number
  /** From the intended send time to the complete answer. */
  readonly acknowledge: Latency
}

interface Destination {
  /** Ingress URLs of the subject, used in turn. */
  readonly urls: ReadonlyArray<string>
  /** The number of the run; sequence numbers start at 0 in each run. */
  readonly run: number
  /**
   * The number of customers that the events are about, in turn. Events of one customer are sent one after the other, each after
   * the answer to the previous one, so that their order is certain. Default: all events have the same customer, and none waits
   * for another.
   */
  readonly customers?: number
  /** Whether each request is sent on a connection of its own, as many senders of webhooks do. Default: connections are kept. */
  readonly newConnections?: boolean
}

const REQUEST_TIMEOUT = 30_000
/** The pause of a closed-loop sender after a refusal, so that a subject that sheds load is not flooded. */
const REFUSAL_PAUSE = 50

interface Ingress {
  readonly pool: Pool
  readonly path: string
}

class Phase {
  readonly startedAt = nowMicros()
  readonly histogram: Histogram = makeHistogram()
  readonly ingresses: ReadonlyArray<Ingress>
  readonly run: number
  readonly customers: number | undefined
  readonly newConnections: boolean
  /** For each customer the last send, which waits for the earlier ones. */
  readonly #lastOf = new Map<number, Promise<boolean>>()
  sequence = 0
  acknowledged = 0
  refused = 0
  limited = 0
  refusal: string | null = null

  constructor(ingresses: ReadonlyArray<Ingress>, { customers, newConnections = false, run }: Destination) {
    this.ingresses = ingresses
    this.run = run
    this.customers = customers
    this.newConnections = newConnections
  }

  /** Sends one event; true: it was acknowledged. Latency is measured from `intendedAt`, so a late start counts. */
  send(intendedAt: number): Promise<boolean> {
    const sequence = this.sequence++
    if (this.customers === undefined) return this.#post(intendedAt, sequence, 0)
    const customer = sequence % this.customers
    const before = this.#lastOf.get(customer)
    const post = () => this.#post(intendedAt, sequence, customer)
    const sent = before === undefined ? post() : before.then(post)
    this.#lastOf.set(customer, sent)
    return sent
  }

  async #post(sentAt: number, sequence: number, customer: number): Promise<boolean> {
    const refuse = (reason: string) => {
      this.refused++
      this.refusal ??= reason
      return false
    }
    const { path, pool } = this.ingresses[sequence % this.ingresses.length]!
    try {
      const { body, headers, statusCode } = await pool.request({
        method: "POST",
        path,
        reset: this.newConnections,
        headers: ["content-type", "application/json", "x-event-type", "order.created"],
        body: makePayload({ sentAt, run: this.run, sequence, customer })
      })
      if (statusCode >= 200 && statusCode < 300) {
        await body.dump()
        record(this.histogram, nowMicros() - sentAt)
        this.acknowledged++
        return true
      }
      if (statusCode === 429 && headers["retry-after"] !== undefined) this.limited++
      return refuse(`${statusCode}: ${(await body.text()).slice(0, 200)}`)
    } catch (error) {
      return refuse(String(error))
    }
  }

  report(): Sent {
    return {
      acknowledged: this.acknowledged,
      refused: this.refused,
      limited: this.limited,
      refusal: this.refusal,
      startedAt: this.startedAt,
      endedAt: nowMicros(),
      acknowledge: summarize(this.histogram)
    }
  }
}

const sleep = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** A sender that keeps its connections from one phase to the next. */
export const makeGenerator = () => {
  const pools = new Map<string, Pool>()
  const ingress = (url: string, connections: number): Ingress => {
    const { origin, pathname } = new URL(url)
    const key = `${origin} ${connections}`
    let pool = pools.get(key)
    if (pool === undefined) {
      pool = new Pool(origin, {
        connections,
        pipelining: 1,
        keepAliveTimeout: 60_000,
        headersTimeout: REQUEST_TIMEOUT,
        bodyTimeout: REQUEST_TIMEOUT
      })
      pools.set(key, pool)
    }
    return { pool, path: pathname }
  }
  const phase = (destination: Destination, connections: number): Phase =>
    new Phase(
      destination.urls.map((url) => ingress(url, connections)),
      destination
    )

  /**
   * Closed loop: each of `inFlight` senders sends its next event when the last one is acknowledged, until `seconds` have passed
   * or `count` events have been sent.
   */
  const saturate = async (
    input: Destination & { readonly inFlight: number; readonly seconds: number; readonly count?: number }
  ): Promise<Sent> => {
    const { count = Number.MAX_SAFE_INTEGER } = input
    const current = phase(input, input.inFlight)
    const until = current.startedAt + input.seconds * 1_000_000
    const sender = async () => {
      while (current.sequence < count && nowMicros() < until) {
        if (!(await current.send(nowMicros()))) await sleep(REFUSAL_PAUSE)
      }
    }
    await Promise.all(Array.from({ length: input.inFlight }, sender))
    return current.report()
  }

  /**
   * Open loop: one event every 1/`perSecond` s for `seconds`, whether or not earlier ones are answered. Timers have a resolution
   * of one millisecond. The resulting error is in the figures, equally for every subject.
   */
  const offer = async (
    input: Destination & { readonly perSecond: number; readonly seconds: number; readonly connections: number }
  ): Promise<Sent> => {
    const current = phase(input, input.connections)
    const total = Math.round(input.perSecond * input.seconds)
    const interval = 1_000_000 / input.perSecond
    const sending: Array<Promise<boolean>> = []
    while (sending.length < total) {
      const due = Math.min(total, Math.floor((nowMicros() - current.startedAt) / interval) + 1)
      while (sending.length < due) sending.push(current.send(Math.round(current.startedAt + sending.length * interval)))
      await sleep(1)
    }
    await Promise.all(sending)
    return current.report()
  }

  const close = async (): Promise<void> => {
    await Promise.all(Array.from(pools.values(), (pool) => pool.destroy()))
  }
  return { saturate, offer, close }
}

/** The commands of the generator process. */
export type GeneratorCommands = ReturnType<typeof makeGenerator>

if (import.meta.main) serve({ ...makeGenerator() })
