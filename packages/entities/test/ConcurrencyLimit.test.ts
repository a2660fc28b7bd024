import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { ConcurrencyLimit, type Ending, maxConcurrent } from "../src/limits/ConcurrencyLimit.ts"
import { Random } from "./Random.ts"
import { type Behaviour, type Second, SimulatedTarget } from "./SimulatedTarget.ts"

const first = 50
const many = Number.POSITIVE_INFINITY

const run = (target: SimulatedTarget, seconds: number, offered: number): ReadonlyArray<Second> =>
  Array.from({ length: seconds }, () => target.second(offered))

const target = (behaviour: Behaviour, limit?: ConcurrencyLimit) => new SimulatedTarget(behaviour, limit)

const exponential = (random: Random, mean: number) => () => -Math.log(1 - random.next()) * mean

const whole = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

const sum = (seconds: ReadonlyArray<Second>, figure: (one: Second) => number): number =>
  seconds.reduce((total, one) => total + figure(one), 0)

describe("Target of constant latency", () => {
  it("A target with 1 s latency reaches 500 concurrent deliveries within seconds and catches up", () => {
    const seconds = run(target({ servers: many, takes: () => 1_000 }), 12, 500)
    expect(seconds.findIndex(({ maxOnWire }) => maxOnWire >= 500)).toBeLessThanOrEqual(5)
    expect(seconds.at(-1)).toMatchObject({ answered: 500, waiting: 0, latency: 1_000 })
  })

  it("A target with 200 ms latency keeps up with 1,000 a second from the first second", () => {
    const seconds = run(target({ servers: many, takes: () => 200 }), 5, 1_000)
    expect(seconds[0]!.waiting).toBeLessThan(300)
    expect(seconds.slice(1).map(({ waiting }) => waiting)).toStrictEqual([0, 0, 0, 0])
  })

  it.prop(
    "A target gets all offered deliveries within the maximum concurrency",
    { latency: whole(1, 2_000), offered: whole(10, 2_000) },
    ({ latency, offered }) => {
      const seconds = run(target({ servers: many, takes: () => latency }), 60, offered).slice(-30)
      const sustained = Math.min(offered, (maxConcurrent / latency) * 1_000)
      expect(sum(seconds, ({ answered }) => answered) / 30).toBeGreaterThan(sustained * 0.95 - 1)
    },
    { arbitrary: { runs: 12 } }
  )

  it("The concurrency limit does not grow while it is not used", () => {
    const seconds = run(target({ servers: many, takes: () => 100 }), 30, 100)
    expect(seconds.at(-1)).toMatchObject({ limit: first, answered: 100 })
  })
})

describe("Target of varying latency", () => {
  it.prop(
    "The limit does not mistake varying latency for a slowdown",
    { seed: whole(0, 2 ** 31), mean: whole(50, 1_000) },
    ({ mean, seed }) => {
      const offered = Math.round((300 / mean) * 1_000)
      const seconds = run(target({ servers: many, takes: exponential(new Random(seed), mean) }), 40, offered)
      expect(sum(seconds.slice(-10), ({ answered }) => answered)).toBeGreaterThan(offered * 9)
    },
    { arbitrary: { runs: 8 } }
  )

  it("A target that answers half at once and half late gets what it needs", () => {
    const random = new Random(7)
    const seconds = run(target({ servers: many, takes: () => (random.chance(0.5) ? 20 : 1_000) }), 30, 600)
    expect(seconds.at(-1)!.waiting).toBe(0)
  })

  it("A target that becomes slower gets a higher limit after a few of its latencies", () => {
    const slow = target({ servers: many, takes: () => 200 })
    run(slow, 10, 700)
    slow.behaviour = { servers: many, takes: () => 1_000 }
    const seconds = run(slow, 12, 700)
    expect(seconds.at(-1)).toMatchObject({ answered: 700, waiting: 0 })
  })
})

describe("Target that makes excess requests wait", () => {
  it.prop(
    "A target with a fixed number of servers stays busy and gets at most about twice as many",
    { servers: whole(5, 300), takes: whole(20, 500) },
    ({ servers, takes }) => {
      const most = (servers / takes) * 1_000
      const seconds = run(target({ servers, takes: () => takes }), 60, most * 2).slice(-30)
      expect(sum(seconds, ({ answered }) => answered) / 30).toBeGreaterThan(most * 0.9)
      const bound = Math.max(2 * first, 2.6 * servers)
      for (const { maxOnWire } of seconds) expect(maxOnWire).toBeLessThanOrEqual(bound)
    },
    { arbitrary: { runs: 12 } }
  )
})

describe("Target that fails", () => {
  const failing = (share: number, random: Random) => (): Ending => (random.chance(share) ? "overloaded" : "answered")

  it("A dead target gets four concurrent deliveries, and its full rate once it is back", () => {
    const dead = target({ servers: many, takes: () => 1_000 })
    run(dead, 10, 500)
    dead.behaviour = { servers: many, takes: () => 30_000, ends: () => "overloaded" }
    const seconds = run(dead, 65, 500)
    expect(seconds.at(-1)!.maxOnWire).toBe(4)
    dead.behaviour = { servers: many, takes: () => 1_000 }
    run(dead, 50, 500)
    expect(dead.second(500).answered).toBeGreaterThanOrEqual(500)
  })

  it("Rare failures do not reduce the rate of a target", () => {
    const random = new Random(3)
    const seconds = run(target({ servers: many, takes: () => 1_000, ends: failing(0.001, random) }), 60, 500)
    expect(seconds.at(-1)!.waiting).toBe(0)
  })

  it("A target that often fails gets few concurrent deliveries", () => {
    const random = new Random(4)
    const seconds = run(target({ servers: many, takes: () => 200, ends: failing(0.3, random) }), 40, 1_000)
    for (const { maxOnWire } of seconds.slice(-20)) expect(maxOnWire).toBeLessThan(first)
  })

  it("A target that answers 429 above its own limit stays busy near it", () => {
    const allowed = 150
    const random = new Random(5)
    const limited: SimulatedTarget = target({
      servers: many,
      takes: () => (limited.onWire < allowed ? random.between(200, 400) : 5),
      ends: (_, onWire) => (onWire > allowed ? "overloaded" : "answered")
    })
    const seconds = run(limited, 60, 1_000).slice(-40)
    expect(sum(seconds, ({ answered }) => answered) / 40).toBeGreaterThan((allowed / 0.3) * 0.8)
    expect(sum(seconds, ({ failed }) => failed)).toBeLessThan(sum(seconds, ({ answered }) => answered) * 0.1)
  })

  it.prop(
    "The limit stays between four and two thousand, whatever fails",
    { seed: whole(0, 2 ** 31) },
    ({ seed }) => {
      const random = new Random(seed)
      const wild = target({
        servers: random.between(1, 400),
        takes: () => random.between(1, 3_000),
        ends: () => random.pick(["answered", "answered", "answered", "overloaded", "unsent"] as const)
      })
      for (const { limit, maxOnWire } of run(wild, 20, random.between(1, 3_000))) {
        expect(limit).toBeGreaterThanOrEqual(4)
        expect(limit).toBeLessThanOrEqual(maxConcurrent)
        expect(maxOnWire).toBeLessThanOrEqual(maxConcurrent)
      }
    },
    { arbitrary: { runs: 12 } }
  )
})

describe("Limit that is set", () => {
  it.prop(
    "A set limit applies from the start, is never exceeded and does not depend on latency",
    { most: whole(1, 2_000) },
    ({ most }) => {
      const set = target({ servers: 10, takes: () => 100 }, new ConcurrencyLimit(most))
      const seconds = run(set, 6, 3_000)
      expect(seconds.map(({ limit }) => limit)).toStrictEqual(seconds.map(() => most))
      expect(seconds.at(-1)!.maxOnWire).toBe(most)
    },
    { arbitrary: { runs: 10 } }
  )

  it("A set limit of one stays one, whatever fails", () => {
    const serial = target({ servers: 1, takes: () => 10, ends: () => "overloaded" }, new ConcurrencyLimit(1))
    for (const { maxOnWire } of run(serial, 5, 500)) expect(maxOnWire).toBe(1)
  })

  it("A set limit falls while the target fails and returns afterwards", () => {
    const set = target({ servers: many, takes: () => 100, ends: () => "overloaded" }, new ConcurrencyLimit(300))
    expect(run(set, 3, 3_000).at(-1)!.limit).toBe(4)
    set.behaviour = { servers: many, takes: () => 100 }
    expect(run(set, 3, 3_000).at(-1)!.limit).toBe(300)
  })
})
