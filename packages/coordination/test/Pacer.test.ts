import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { guardMs, Pacer } from "../src/limits/Pacer.ts"
import type { RatePeriod } from "@tidegate/model/Destination"
import { Random } from "../../entities/test/Random.ts"

const seed = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 31 })))
const rate = {
  limit: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5_000 }))),
  period: Arbitrary.schema(Schema.Literals(["second", "minute", "hour", "day"]))
}

const epoch = 1_790_000_000_000

/** The shortest time that `limit + 1` of these starts took: longer than a period when the rate holds. */
const tightest = (starts: ReadonlyArray<number>, limit: number): number => {
  const sorted = starts.toSorted((a, b) => a - b)
  let least = Number.POSITIVE_INFINITY
  for (let i = limit; i < sorted.length; i++) least = Math.min(least, sorted[i]! - sorted[i - limit]!)
  return least
}

/**
 * Uses a pacer as a queue does: slots are taken when it allows it, and used or given back after a mark that takes its
 * time. Gives the times at which deliveries started. The clock is read with `skew`, which the target does not see.
 */
class Usage {
  readonly starts: Array<number> = []
  now: number
  skew = 0
  readonly #pacer: Pacer
  #marks: Array<{ readonly at: number; readonly used: boolean }> = []

  constructor(pacer: Pacer, now: number) {
    this.#pacer = pacer
    this.now = now
  }

  get #clock(): number {
    return this.now + this.skew
  }

  /** Takes what may be taken now, at the most `wanted`; each is marked after `markMs()`. */
  take(wanted: number, markMs: () => number, used: () => boolean): void {
    for (let i = 0; i < wanted && this.#pacer.nextAt(this.#clock) <= this.#clock; i++) {
      this.#pacer.take(this.#clock)
      this.#marks.push({ at: this.now + markMs(), used: used() })
    }
    this.advance(0)
  }

  advance(ms: number): void {
    this.now += ms
    const due = this.#marks.filter((mark) => mark.at <= this.now)
    this.#marks = this.#marks.filter((mark) => mark.at > this.now)
    for (const { used } of due) {
      if (used) {
        this.#pacer.start(this.#clock)
        this.starts.push(this.now)
      } else this.#pacer.release()
    }
  }

  /** To the time at which something may happen, on a timer that is `lateMs` late. */
  sleep(lateMs: number): void {
    const next = Math.min(this.#pacer.nextAt(this.#clock) - this.skew, ...this.#marks.map((mark) => mark.at))
    this.advance(Math.max(1, next - this.now + lateMs))
  }
}

describe("Sliding window of the pacer", () => {
  it.prop(
    "Pacer never allows more starts in a window than its limit, even with slow permit writes",
    { ...rate, seed },
    ({ limit, period, seed }) => {
      const random = new Random(seed)
      const pacer = new Pacer(limit, period)
      const usage = new Usage(pacer, epoch)
      const slowMarks = random.chance(0.3)
      const markMs = () =>
        slowMarks && random.chance(0.2) ? random.between(0, 3 * pacer.period) : random.between(0, 5)
      for (let i = 0; i < 400; i++) {
        usage.take(random.chance(0.5) ? limit : random.between(1, 20), markMs, () => random.chance(0.95))
        if (random.chance(0.7)) usage.sleep(random.between(0, 5))
        else usage.advance(random.between(0, random.chance(0.2) ? pacer.period : 20))
      }
      expect(tightest(usage.starts, limit)).toBeGreaterThan(pacer.period)
    },
    { arbitrary: { runs: 150 } }
  )

  it.prop(
    "Pacer keeps the limit after a takeover and under a lower limit, by the remembered starts",
    { ...rate, seed },
    ({ limit, period, seed }) => {
      const random = new Random(seed)
      const before = new Usage(new Pacer(limit, period), epoch)
      const run = (usage: Usage) => {
        for (let i = 0; i < 200; i++) {
          usage.take(
            limit,
            () => random.between(0, 3),
            () => true
          )
          usage.sleep(random.between(0, 5))
        }
      }
      run(before)
      const lower = random.between(1, limit)
      const pacer = new Pacer(lower, period)
      pacer.remember(before.starts.filter((at) => at > before.now - pacer.period).map((at) => [at, 1]))
      const after = new Usage(pacer, before.now)
      run(after)
      expect(tightest(after.starts, lower)).toBeGreaterThan(pacer.period)
      // Across the change: whatever window ends after it holds no more than the new limit allows on top of the old.
      for (const start of after.starts.slice(0, 50)) {
        const window = [...before.starts, ...after.starts].filter((at) => at > start - pacer.period && at <= start)
        const old = before.starts.filter((at) => at > start - pacer.period).length
        expect(window.length).toBeLessThanOrEqual(Math.max(lower, old))
      }
    },
    { arbitrary: { runs: 60 } }
  )

  it.prop(
    "Pacer keeps the limit when the clock is set back and does not wait for the old time",
    { ...rate, seed },
    ({ limit, period, seed }) => {
      const random = new Random(seed)
      const pacer = new Pacer(limit, period)
      const usage = new Usage(pacer, epoch)
      for (let i = 0; i < 300; i++) {
        usage.take(
          limit,
          () => random.between(0, 3),
          () => true
        )
        usage.sleep(random.between(0, 5))
        if (random.chance(0.05)) usage.skew -= random.between(1, 10 * pacer.period)
      }
      expect(tightest(usage.starts, limit)).toBeGreaterThan(pacer.period)
      const clock = usage.now + usage.skew
      expect(pacer.nextAt(clock)).toBeLessThanOrEqual(clock + pacer.period + 2 * pacer.slice + 2 * guardMs)
    },
    { arbitrary: { runs: 60 } }
  )

  it("Pacer keeps the limit when delayed permit writes complete together", () => {
    const pacer = new Pacer(20, "second")
    const usage = new Usage(pacer, epoch)
    const heldUp = () => epoch + 3_000 - usage.now
    while (usage.now < epoch + 3_000) {
      usage.take(50, heldUp, () => true)
      usage.advance(5)
    }
    for (let i = 0; i < 400; i++) {
      usage.take(
        50,
        () => 1,
        () => true
      )
      usage.advance(5)
    }
    expect(usage.starts.length).toBeGreaterThanOrEqual(40)
    expect(tightest(usage.starts, 20)).toBeGreaterThan(1_000)
  })
})

describe("Backlog of a paced destination", () => {
  it.prop(
    "Pacer uses at least 95 % of the rate for a backlog, with timers and writes up to 5 ms late",
    { ...rate, seed },
    ({ limit, period, seed }) => {
      const random = new Random(seed)
      const pacer = new Pacer(limit, period)
      const usage = new Usage(pacer, epoch)
      const late = random.between(0, 5)
      const mark = random.between(0, 5)
      // A handful of starts cannot show a percentage.
      const until = epoch + pacer.period * Math.max(3, Math.ceil(40 / limit))
      while (usage.now < until) {
        usage.take(
          limit,
          () => random.between(0, mark),
          () => true
        )
        usage.sleep(random.between(0, late))
      }
      const expected = (limit * (usage.now - epoch)) / pacer.period
      expect(usage.starts.length).toBeGreaterThanOrEqual(Math.floor(0.95 * expected))
    },
    { arbitrary: { runs: 80 } }
  )

  it.each<[number, RatePeriod]>([
    [1, "second"],
    [2, "second"],
    [5_000, "second"],
    [1, "minute"],
    [60, "minute"],
    [61, "minute"],
    [5_000, "day"]
  ])("Pacer uses at least 95 % of the rate for a backlog at %i per %s", (limit, period) => {
    const pacer = new Pacer(limit, period)
    const usage = new Usage(pacer, epoch)
    const until = epoch + 10 * pacer.period
    while (usage.now < until) {
      usage.take(
        limit,
        () => 3,
        () => true
      )
      usage.sleep(5)
    }
    expect(usage.starts.length).toBeGreaterThanOrEqual(9.5 * limit)
    expect(tightest(usage.starts, limit)).toBeGreaterThan(pacer.period)
  })

  it.each([20, 50, 600])(
    "Pacer spreads a backlog at %i per second evenly and does not repeat the burst it begins with",
    (limit) => {
      const pacer = new Pacer(limit, "second")
      const usage = new Usage(pacer, epoch)
      while (usage.now < epoch + 20_000) {
        usage.take(
          limit,
          () => 1,
          () => true
        )
        usage.sleep(1)
      }
      const later = usage.starts.filter((at) => at > epoch + 2_000)
      let most = 0
      for (const start of later) most = Math.max(most, later.filter((at) => at >= start && at < start + 100).length)
      expect(most).toBeLessThanOrEqual(limit / 10 + 2)
    }
  )
})

describe("Permit of the pacer", () => {
  it("Permit of the pacer counts until it is released", () => {
    const pacer = new Pacer(1, "second")
    pacer.take(epoch)
    expect(pacer.nextAt(epoch + 60_000)).toBe(Number.POSITIVE_INFINITY)
    pacer.release()
    expect(pacer.nextAt(epoch + 60_000)).toBe(epoch + 60_000)
  })

  it("Permit of the pacer counts from the start of the call and not from when it was taken", () => {
    const pacer = new Pacer(1, "second")
    pacer.take(epoch)
    pacer.start(epoch + 700)
    expect(pacer.nextAt(epoch + 1_700)).toBeGreaterThan(epoch + 1_700)
    expect(pacer.nextAt(epoch + 1_730)).toBe(epoch + 1_730)
  })
})
