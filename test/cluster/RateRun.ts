import { now, sleep, waitUntil } from "../support/Waiting.ts"
import type { Gateways } from "../support/Gateways.ts"
import type { Row } from "../support/sql.ts"
import { Target } from "../support/Target.ts"

/** A delivery that was started: when, for which connection. */
export interface Start {
  /** Unix ms. */
  readonly at: number
  readonly connection: string
  readonly event: string
}

/** Most starts in any window of `periodMs`, whole windows and not calendar ones. */
export const maxInWindow = (starts: ReadonlyArray<number>, periodMs: number): number => {
  const sorted = starts.toSorted((a, b) => a - b)
  let most = 0
  let first = 0
  for (let last = 0; last < sorted.length; last++) {
    while (sorted[last]! - sorted[first]! >= periodMs) first++
    most = Math.max(most, last - first + 1)
  }
  return most
}

/** A destination with a rate, connections to it with a backlog each, and a target that remembers what came when. */
export class RateRun<Name extends string> {
  readonly target: Target
  readonly destination: string
  readonly connections: ReadonlyArray<string>
  readonly #gateways: Gateways<Name>
  readonly #name: string
  readonly #sources: ReadonlyArray<string>

  private constructor(options: {
    readonly gateways: Gateways<Name>
    readonly target: Target
    readonly name: string
    readonly destination: string
    readonly connections: ReadonlyArray<string>
    readonly sources: ReadonlyArray<string>
  }) {
    this.#gateways = options.gateways
    this.target = options.target
    this.#name = options.name
    this.destination = options.destination
    this.connections = options.connections
    this.#sources = options.sources
  }

  static async make<Name extends string>(
    gateways: Gateways<Name>,
    by: Name,
    options: {
      readonly name: string
      readonly limit: number
      readonly period: "second" | "minute"
      readonly connections: number
    }
  ): Promise<RateRun<Name>> {
    const { connections, limit, name, period } = options
    const target = await Target.start()
    const { id: destination } = await gateways.api(by, "POST", "/destinations", {
      name,
      config: { url: `${target.origin}/${name}`, rate_limit: limit, rate_limit_period: period }
    })
    const made = await Promise.all(
      Array.from({ length: connections }, async (_, index) => {
        const { id: source } = await gateways.api(by, "POST", "/sources", { name: `${name}-${index}` })
        const { id } = await gateways.api(by, "POST", "/connections", {
          name: `${name}-${index}`,
          source_id: source,
          destination_id: destination
        })
        return { id, source }
      })
    )
    return new RateRun({
      gateways,
      target,
      name,
      destination,
      connections: made.map(({ id }) => id),
      sources: made.map(({ source }) => source)
    })
  }

  /** Sends that many events through each connection, all of the first before those of the second. */
  async send(by: Name, counts: ReadonlyArray<number>): Promise<void> {
    for (const [index, count] of counts.entries()) {
      for (let sent = 0; sent < count; sent += 50) {
        await Promise.all(
          Array.from({ length: Math.min(50, count - sent) }, async () => {
            const answer = await this.#gateways.call(by, "POST", `/e/${this.#sources[index]!}`, {
              headers: { "content-type": "application/json" },
              body: `{"n":${sent}}`
            })
            if (answer.status !== 200) throw new Error(`not accepted: ${answer.status} ${answer.body}`)
          })
        )
      }
    }
  }

  /** Waits until that many more deliveries have come. */
  async deliveries(more: number): Promise<void> {
    const until = this.target.received.length + more
    await waitUntil(`${this.#name} gets ${more} more`, () => this.target.received.length >= until, {
      seen: () => this.target.received.length
    })
  }

  async setRate(by: Name, limit: number): Promise<{ readonly askedAt: number; readonly returnedAt: number }> {
    const askedAt = Date.now()
    await this.#gateways.api(by, "PATCH", `/destinations/${this.destination}`, { config: { rate_limit: limit } })
    return { askedAt, returnedAt: Date.now() }
  }

  /** The process that delivers now: the latest delivery came from it. */
  owner(): Name {
    const latest = this.target.received.at(-1)
    const owner = this.#gateways.names.find((name) => {
      const { pid } = this.#gateways.process(name)
      return pid !== null && latest !== undefined && this.target.from(pid).includes(latest)
    })
    if (owner === undefined) throw new Error("the latest delivery came from no process that still runs")
    return owner
  }

  /** What the attempts say, once all that has arrived is recorded, or none of it was for a second: whoever had it was killed. */
  async starts(): Promise<ReadonlyArray<Start>> {
    const arrived = this.target.received.length
    let rows = await this.#attempts()
    let grewAt = now()
    while (rows.length < arrived && now() - grewAt < 1_000) {
      await sleep(50)
      const later = await this.#attempts()
      if (later.length > rows.length) grewAt = now()
      rows = later
    }
    return rows.map((row) => ({
      at: new Date(row["at"] as string | Date).getTime(),
      connection: String(row["connection"]),
      event: String(row["event"])
    }))
  }

  /** Waits until no more than so many arrivals belong to no start that is recorded: what arrived last is recorded soon. */
  async recorded(but: number): Promise<void> {
    const elsewhere = async (): Promise<boolean> => this.#startedElsewhere(await this.starts()) <= but
    await waitUntil(`all but ${but} of what ${this.#name} got have a start`, elsewhere)
  }

  /**
   * The limit is on starts, which is what the gateway has in hand and what attempts record. What was started evenly may reach
   * the target in bunches when the machine is busy, but never before its start: each start is taken for the event's first
   * arrival that follows it. Gives how many arrivals are left, which belong to no start that is recorded.
   */
  #startedElsewhere(starts: ReadonlyArray<Start>): number {
    const left = new Map<string, Array<number>>()
    const last = Math.max(...starts.map(({ at }) => at))
    for (const { at, headers } of this.target.received) {
      if (at > last) continue
      const event = String(headers["x-gateway-event-id"])
      left.set(event, [...(left.get(event) ?? []), at])
    }
    for (const { at, event } of starts) {
      const arrivals = left.get(event) ?? []
      // Two processes tell the time by some milliseconds differently.
      const index = arrivals.findIndex((arrival) => arrival >= at - 10)
      if (index >= 0) arrivals.splice(index, 1)
    }
    let count = 0
    for (const arrivals of left.values()) count += arrivals.length
    return count
  }

  #attempts(): Promise<ReadonlyArray<Row>> {
    return this.#gateways.query(
      "select delivered_at as at, connection_id as connection, event_id as event from attempts where destination_id = $1 order by delivered_at",
      [this.destination]
    )
  }
}

/**
 * Sleeps, and tells what part of its turns a timer of `everyMs` had meanwhile. A machine that is busy comes late to each of
 * them, and so does the gateway, which has more to do in each.
 */
export const sleepAndCount = async (ms: number, everyMs: number): Promise<number> => {
  const until = performance.now() + ms
  let turns = 0
  while (performance.now() < until) {
    await sleep(everyMs)
    turns++
  }
  return (turns * everyMs) / ms
}
