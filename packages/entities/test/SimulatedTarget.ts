import { ConcurrencyLimit, type Departure, type Ending } from "../src/limits/ConcurrencyLimit.ts"

/** What a target does with an exchange: how long it takes (ms) by itself, and how it ends. */
export interface Behaviour {
  /** How many it works on at once; the others wait in turn. */
  readonly servers: number
  readonly takes: (now: number) => number
  readonly ends?: (now: number, onWire: number) => Ending
}

interface Exchange {
  readonly departure: Departure
  readonly endsAt: number
  readonly how: Ending
}

/** What was seen in one second. */
export interface Second {
  readonly limit: number
  readonly maxOnWire: number
  readonly answered: number
  readonly failed: number
  /** Mean, ms. */
  readonly latency: number
  readonly waiting: number
}

/**
 * A target, and deliveries to it that come at a rate and wait for the limit: in steps of a millisecond. `behaviour` may change as
 * it goes on.
 */
export class SimulatedTarget {
  readonly limit: ConcurrencyLimit
  behaviour: Behaviour
  now = 0
  waiting = 0
  #owed = 0
  /** On the wire, in the order in which they end. */
  #wire: Array<Exchange> = []
  /** When each server is free again. */
  #servers: Array<number> = []

  constructor(behaviour: Behaviour, limit = new ConcurrencyLimit(null)) {
    this.behaviour = behaviour
    this.limit = limit
  }

  get onWire(): number {
    return this.#wire.length
  }

  /** Lets one second pass with so many deliveries offered in it. */
  second(offered: number): Second {
    let maxOnWire = 0
    let answered = 0
    let failed = 0
    let latency = 0
    const { limit } = this
    for (const until = this.now + 1_000; this.now < until; this.now++) {
      this.#owed += offered / 1_000
      const arrived = Math.floor(this.#owed)
      this.#owed -= arrived
      this.waiting += arrived
      while (this.#wire.length > 0 && this.#wire[0]!.endsAt <= this.now) {
        const { departure, how } = this.#wire.shift()!
        limit.ended(how, departure, this.now)
        this.#fill()
        if (how === "answered") {
          answered++
          latency += this.now - departure.at
        } else failed++
      }
      this.#fill()
      maxOnWire = Math.max(maxOnWire, this.#wire.length)
    }
    return { limit: limit.value, maxOnWire, answered, failed, latency: latency / answered, waiting: this.waiting }
  }

  #fill(): void {
    while (this.waiting > 0 && this.#wire.length < this.limit.value) this.#start()
  }

  #start(): void {
    this.waiting--
    const { ends, takes } = this.behaviour
    const place = this.#wire.length + 1
    const departure = this.limit.begun(this.now, place)
    const endsAt = this.#begin(takes(this.now))
    let at = this.#wire.length
    while (at > 0 && this.#wire[at - 1]!.endsAt > endsAt) at--
    this.#wire.splice(at, 0, { departure, endsAt, how: ends?.(this.now, place) ?? "answered" })
  }

  /** The server that is free first takes it on. */
  #begin(takes: number): number {
    const { servers } = this.behaviour
    if (servers === Number.POSITIVE_INFINITY) return this.now + takes
    if (this.#servers.length !== servers) this.#servers = Array.from({ length: servers }, () => 0)
    let next = 0
    for (let at = 1; at < servers; at++) if (this.#servers[at]! < this.#servers[next]!) next = at
    return (this.#servers[next] = Math.max(this.now, this.#servers[next]!) + takes)
  }
}
