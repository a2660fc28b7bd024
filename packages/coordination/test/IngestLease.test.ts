import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { type RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"
import { IngestBudget, largestShare } from "../src/limits/IngestBudget.ts"
import { Random } from "../../entities/test/Random.ts"
import { againMs, type Asked, IngestLease } from "../src/limits/IngestLease.ts"

const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))
const limits = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_000 })))

/**
 * Ingress processes that take requests of one source, and its actor, which is asked over a network and may be away. The period and
 * what is leased of it outlive the actor, as in SQL.
 */
class World {
  now = 1_000
  readonly random: Random
  readonly limit: number
  readonly periodMs: number
  readonly ingresses: ReadonlyArray<IngestLease>
  /** Null: away. */
  #actor: { readonly budget: IngestBudget; noted: number } | null = null
  #stored = { number: 0, endsAt: 0, leased: 0 }
  #due: Array<{ readonly at: number; readonly run: () => void }> = []
  /** By the number of the period in which they were accepted. */
  readonly accepted = new Map<number, number>()
  asked = 0

  constructor(options: {
    readonly seed: number
    readonly limit: number
    readonly ingresses: number
    readonly period?: RatePeriod
  }) {
    const { ingresses, limit, period = "minute", seed } = options
    this.random = new Random(seed)
    this.limit = limit
    this.periodMs = ratePeriodMs[period]
    this.ingresses = Array.from({ length: ingresses }, () => {
      const lease = new IngestLease()
      lease.limitTo(limit, period)
      return lease
    })
  }

  get period(): number {
    return this.#stored.number
  }

  get lease(): number {
    return Math.ceil(this.limit / largestShare)
  }

  /** A lease; of small limits, one request of each ingress process. */
  get slack(): number {
    return Math.max(this.lease, this.ingresses.length)
  }

  start(): void {
    this.#actor = { budget: new IngestBudget(this.limit, this.periodMs), noted: 0 }
  }

  kill(): void {
    this.#actor = null
  }

  /** An ingress process gets a request. */
  request(ingress: number): boolean {
    const lease = this.ingresses[ingress]!
    this.#send(ingress, lease.request(this.now))
    if (lease.wait(this.now) > 0 || !lease.take()) return false
    // The first period begins when the actor hears of the first request.
    const period = Math.max(1, this.period)
    this.accepted.set(period, (this.accepted.get(period) ?? 0) + 1)
    return true
  }

  #send(ingress: number, asked: Asked | null): void {
    const lease = this.ingresses[ingress]!
    if (asked !== null) {
      this.asked++
      const patience = this.now + 1_000
      let isOver = false
      const end = (at: number, run: () => void): void => {
        this.#due.push({
          at,
          run: () => {
            if (!isOver) run()
            isOver = true
          }
        })
      }
      end(patience, () => {
        lease.unanswered(asked, this.now)
        const run = (): void => {
          if (lease.isUnreported) this.#send(ingress, lease.ask(this.now))
        }
        this.#due.push({ at: this.now + againMs, run })
      })
      const arrives = this.now + this.random.between(0, 10)
      this.#due.push({
        at: arrives,
        run: () => {
          const given = this.#answer(`door ${ingress}`, asked)
          if (given !== null) end(this.now + this.random.between(0, 10), () => lease.answered(asked, given, this.now))
        }
      })
    }
  }

  advance(ms: number): void {
    this.now += ms
    for (;;) {
      const due = this.#due.filter(({ at }) => at <= this.now).toSorted((a, b) => a.at - b.at)
      if (due.length === 0) return
      this.#due = this.#due.filter(({ at }) => at > this.now)
      for (const { run } of due) run()
    }
  }

  #answer(ingress: string, asked: Asked) {
    const actor = this.#actor
    if (actor === null) return null
    const { budget } = actor
    const ahead = Math.ceil(this.limit / 32)
    if (budget.remaining(this.now) <= 0) {
      const isOver = this.#stored.endsAt <= this.now
      if (isOver) this.#stored = { number: this.period + 1, endsAt: this.now + this.periodMs, leased: ahead }
      actor.noted = this.#stored.leased
      if (isOver) budget.begin(this.#stored.endsAt)
      else budget.takeOver(this.#stored.endsAt, this.#stored.leased, this.now)
    }
    const given = budget.lease({ door: ingress, ...asked }, this.now)
    const leased = budget.leased(this.now)
    if (leased > actor.noted) actor.noted = this.#stored.leased = leased + ahead
    return { ...given, remainingMs: budget.remaining(this.now), leaseMs: budget.leaseMs }
  }
}

/** Sends requests for `ms` milliseconds: to each ingress process as many per second as its rate. */
const load = (world: World, ms: number, rates: ReadonlyArray<number>): void => {
  for (const until = world.now + ms; world.now < until; world.advance(1)) {
    for (const [ingress, rate] of rates.entries()) {
      for (let left = rate / 1_000; left > 0; left--) if (world.random.chance(left)) world.request(ingress)
    }
  }
}

const inFirst = (world: World): number => world.accepted.get(1) ?? 0

describe("Ingress processes with leases of one limit", () => {
  it.prop("Leased limit accepts its number of requests and at most one lease more", [seed, limits], ([seed, limit]) => {
    const world = new World({ seed, limit, ingresses: 2 })
    world.start()
    const rate = limit / 4
    load(world, 12_000, [rate, rate])
    expect(world.period).toBe(1)
    expect(inFirst(world)).toBeLessThanOrEqual(limit + world.slack)
    expect(inFirst(world)).toBeGreaterThanOrEqual(limit)
  })

  it.prop("Leased limit is shared by demand", [seed, limits], ([seed, limit]) => {
    const world = new World({ seed, limit, ingresses: 3 })
    world.start()
    load(world, 20_000, [limit / 4, limit / 100, 0])
    expect(inFirst(world)).toBeLessThanOrEqual(limit + world.slack)
    // What the second process holds and does not need comes back when it asks again.
    expect(inFirst(world)).toBeGreaterThanOrEqual(limit - world.lease)
  })

  it.prop("Leased limit accepts its number of requests once if its actor dies", [seed, limits], ([seed, limit]) => {
    const world = new World({ seed, limit, ingresses: 2 })
    world.start()
    const rates = [limit / 10, limit / world.random.between(5, 50)]
    // A process that has never had a lease takes the whole limit.
    for (const ingress of world.ingresses.keys()) world.request(ingress)
    world.advance(20)
    load(world, world.random.between(0, 20_000), rates)
    world.kill()
    load(world, world.random.between(0, 20_000), rates)
    world.start()
    load(world, 5_000, [limit, limit])
    expect(world.period).toBeLessThanOrEqual(1)
    expect(inFirst(world)).toBeLessThanOrEqual(limit + 2 * world.slack)
    expect(inFirst(world)).toBeGreaterThanOrEqual(limit - 3 * world.slack)
  })
})

describe("Ingress process without an answer of the limit's actor", () => {
  it.for([12, 100, 1_000])("Ingress process that has asked once stays within its lease of a limit of %d", (limit) => {
    const world = new World({ seed: 1, limit, ingresses: 2 })
    world.start()
    world.request(1)
    world.advance(50)
    // The other one uses all of it meanwhile.
    load(world, 4_000, [limit, 0])
    world.kill()
    load(world, 4_000, [0, limit])
    expect(inFirst(world)).toBeGreaterThanOrEqual(limit)
    expect(inFirst(world)).toBeLessThanOrEqual(limit + 2 * world.slack)
  })

  it.prop("Ingress process without an actor continues with its share", [seed, limits], ([seed, limit]) => {
    const world = new World({ seed, limit, ingresses: 2, period: "second" })
    world.start()
    load(world, 5_000, [2 * limit, 2 * limit])
    world.kill()
    load(world, 3_000, [2 * limit, 2 * limit])
    const before = inAll(world)
    load(world, 10_000, [2 * limit, 2 * limit])
    const each = (inAll(world) - before) / 10
    expect(each).toBeLessThanOrEqual(limit + world.slack)
    // A share is of whole requests, and a period of its own begins with the first request after the last one.
    expect(each).toBeGreaterThanOrEqual(limit / 3)
  })

  it("Ingress process that never had a lease uses the whole limit after it has waited for a second", () => {
    const world = new World({ seed: 1, limit: 80, ingresses: 1 })
    load(world, 900, [1_000])
    expect(inAll(world)).toBe(world.lease)
    load(world, 5_000, [1_000])
    expect(inAll(world)).toBe(80)
    load(world, 60_000, [1_000])
    expect(inAll(world)).toBe(160)
  })
})

describe("Messages for leases", () => {
  it.prop("Leases cost few messages, however many requests arrive", [seed], ([seed]) => {
    const world = new World({ seed, limit: 3_000, ingresses: 2 })
    world.start()
    load(world, 59_000, [300, 300])
    expect(world.period).toBe(1)
    // Twice a second once nothing is left, and some dozens before.
    expect(world.asked).toBeLessThanOrEqual(2 * (2 * 59 + 80))
  })

  it("Leases cost no messages while no requests arrive", () => {
    const world = new World({ seed: 1, limit: 100, ingresses: 1, period: "hour" })
    world.start()
    world.request(0)
    world.advance(100)
    const { asked } = world
    world.advance(600_000)
    expect(world.asked).toBe(asked)
  })
})

describe("Changed leased limit", () => {
  it("Lowered leased limit applies to the next request", () => {
    const world = new World({ seed: 1, limit: 800, ingresses: 1 })
    world.start()
    load(world, 2_000, [200])
    const [ingress] = world.ingresses
    ingress!.limitTo(8, "minute")
    const before = inAll(world)
    for (let i = 0; i < 50; i++) world.request(0)
    expect(inAll(world) - before).toBeLessThanOrEqual(1)
  })
})

const inAll = (world: World): number => [...world.accepted.values()].reduce((sum, count) => sum + count, 0)
