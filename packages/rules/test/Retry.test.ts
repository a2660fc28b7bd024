import { RetryRule } from "@tidegate/model/Rule"
import {
  askedWait,
  compileRetry,
  nextRetry,
  parseRetryAfter,
  type RetryPolicy,
  retryWindow
} from "@tidegate/rules/Retry"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Result, Schema } from "effect"
import { TestClock } from "effect/testing"

type Written = Partial<Omit<typeof RetryRule.Encoded, "type">>

const policyOf = (written: Written): RetryPolicy =>
  Result.getOrThrow(compileRetry(Schema.decodeSync(RetryRule)({ type: "retry", ...written })))

const failed = (status: number | null, retryAfter: string | null = null) => ({ status, retryAfter })
const middle = 0.5
const start = Date.UTC(2026, 0, 1)

/** The waits after each of the first `attempts` failures, until the last one is final. */
const waits = (policy: RetryPolicy, attempts: number, random = middle): ReadonlyArray<number | string> => {
  const found: Array<number | string> = []
  let now = start
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const next = nextRetry(policy, attempt, failed(500), now, start, random)
    found.push(next.final ? next.reason : next.retryAt - now)
    if (next.final) break
    now = next.retryAt
  }
  return found
}

const reason = (...args: Parameters<typeof nextRetry>): string => {
  const next = nextRetry(...args)
  return next.final ? next.reason : `in ${next.retryAt - args[3]}`
}

describe("Schedule of a retry rule", () => {
  it("A linear rule always waits its interval", () => {
    expect(waits(policyOf({ strategy: "linear", count: 3, interval: 1_000 }), 9)).toStrictEqual([
      1_000,
      1_000,
      1_000,
      "EXHAUSTED"
    ])
  })
  it("An exponential rule doubles its interval", () => {
    expect(waits(policyOf({ strategy: "exponential", count: 5, interval: 60_000 }), 9)).toStrictEqual([
      60_000,
      120_000,
      240_000,
      480_000,
      960_000,
      "EXHAUSTED"
    ])
  })
  it("A retry rule makes 5 exponential retries from one minute by default", () => {
    expect(waits(policyOf({}), 9)).toStrictEqual([60_000, 120_000, 240_000, 480_000, 960_000, "EXHAUSTED"])
  })
  it("A wait varies by up to 10 %, but not below 5 s", () => {
    const linear = policyOf({ strategy: "linear", count: 1, interval: 100_000 })
    expect(waits(linear, 1, 0)).toStrictEqual([90_000])
    expect(waits(linear, 1, 0.75)).toStrictEqual([105_000])
    expect(Number(waits(linear, 1, 1 - Number.EPSILON)[0])).toBeLessThanOrEqual(110_000)
    expect(waits(policyOf({ strategy: "linear", interval: 4_999 }), 1, 0)).toStrictEqual([4_999])
    expect(waits(policyOf({ strategy: "linear", interval: 5_000 }), 1, 0)).toStrictEqual([4_500])
  })
  it("Retries end 7 days after the first attempt", () => {
    const daily = policyOf({ strategy: "linear", count: 50, interval: 86_400_000 })
    expect(waits(daily, 50)).toStrictEqual([...Array.from({ length: 7 }, () => 86_400_000), "WINDOW_PASSED"])
    const week = policyOf({ strategy: "linear", interval: retryWindow })
    expect(waits(week, 9)).toStrictEqual([retryWindow, "WINDOW_PASSED"])
    expect(waits(week, 9, 0.51)).toStrictEqual(["WINDOW_PASSED"])
  })
  it("The largest retry rule gives a finite time", () => {
    const largest = policyOf({ strategy: "exponential", count: 50, interval: 604_800_000 })
    expect(reason(largest, 50, failed(500), start, start, middle)).toBe("WINDOW_PASSED")
  })
})

describe("Failures that are retried", () => {
  const policy = policyOf({ strategy: "linear", interval: 1_000, response_status_codes: ["429", "500-599", "!501"] })
  const after = (status: number | null) => reason(policy, 1, failed(status), start, start, middle)

  it("The statuses of a rule and every transport error are retried", () => {
    expect(after(429)).toBe("in 1000")
    expect(after(503)).toBe("in 1000")
    expect(after(null)).toBe("in 1000")
    expect(after(501)).toBe("STATUS_NOT_COVERED")
    expect(after(404)).toBe("STATUS_NOT_COVERED")
  })
  it("A rule without statuses retries every status except 2xx", () => {
    for (const status of [301, 400, 404, 500, 599]) {
      expect(reason(policyOf({}), 1, failed(status), start, start, middle)).toBe("in 60000")
    }
  })
  it("A status of 410 is never retried, even if the rule names it", () => {
    const gone = policyOf({ response_status_codes: [410] })
    expect(reason(gone, 1, failed(410, "5"), start, start, middle)).toBe("GONE")
  })
  it("Nothing is retried without a retry rule", () => {
    expect(reason(null, 1, failed(500, "5"), start, start, middle)).toBe("NO_RETRY_RULE")
    expect(reason(null, 1, failed(null), start, start, middle)).toBe("NO_RETRY_RULE")
  })
})

describe("Retry-After", () => {
  const policy = policyOf({ strategy: "linear", count: 2, interval: 60_000 })
  const after = (retryAfter: string, attempt = 1, status = 503) =>
    reason(policy, attempt, failed(status, retryAfter), start, start, 0)

  it("Retry-After replaces the wait of the rule, longer or shorter", () => {
    expect(after("120")).toBe("in 120000")
    expect(after("2")).toBe("in 2000")
    expect(after("7200", 1, 400)).toBe("in 7200000")
    expect(after("Thu, 01 Jan 2026 01:00:00 GMT")).toBe("in 3600000")
  })
  it("Retry-After waits at least one second", () => {
    expect(after("0")).toBe("in 1000")
    expect(after("Wed, 31 Dec 2025 00:00:00 GMT")).toBe("in 1000")
  })
  it("Retry-After counts as a retry and cannot exceed the 7 days", () => {
    expect(after("1", 3)).toBe("EXHAUSTED")
    expect(after("604800")).toBe("in 604800000")
    expect(after("604801")).toBe("WINDOW_PASSED")
    expect(after("999999999999999")).toBe("WINDOW_PASSED")
  })
  it("Retry-After of a target that rejects everything for now goes beyond the count, up to 50 attempts", () => {
    const refused = { ...failed(429, "2"), refusedForNow: true }
    expect(reason(policy, 3, refused, start, start, 0)).toBe("in 2000")
    expect(reason(policy, 49, refused, start, start, 0)).toBe("in 2000")
    expect(reason(policy, 50, refused, start, start, 0)).toBe("EXHAUSTED")
    expect(reason(policy, 3, { ...refused, refusedForNow: false }, start, start, 0)).toBe("EXHAUSTED")
    expect(reason(null, 1, refused, start, start, 0)).toBe("NO_RETRY_RULE")
    const limited = policyOf({ response_status_codes: [500] })
    expect(reason(limited, 1, refused, start, start, 0)).toBe("STATUS_NOT_COVERED")
  })
  it("A Retry-After of -1 cancels the remaining retries", () => {
    expect(after("-1")).toBe("CANCELLED_BY_DESTINATION")
  })
  it("Retry-After does not cause a retry of a status that the rule excludes", () => {
    const limited = policyOf({ response_status_codes: [500] })
    expect(reason(limited, 1, failed(503, "5"), start, start, 0)).toBe("STATUS_NOT_COVERED")
  })
  it("An invalid Retry-After is ignored", () => {
    expect(after("soon")).toBe("in 54000")
  })
  it("Retry-After can be seconds, one of three HTTP date formats, or -1", () => {
    const now = Date.UTC(1994, 10, 6, 8, 49, 0)
    expect(parseRetryAfter("120", now)).toBe(120_000)
    expect(parseRetryAfter(" 120 ", now)).toBe(120_000)
    expect(parseRetryAfter("1.5", now)).toBe(1_500)
    expect(parseRetryAfter("0.0001", now)).toBe(1)
    expect(parseRetryAfter("-1", now)).toBe("cancel")
    expect(parseRetryAfter("Sun, 06 Nov 1994 08:49:37 GMT", now)).toBe(37_000)
    expect(parseRetryAfter("Sunday, 06-Nov-94 08:49:37 GMT", now)).toBe(37_000)
    expect(parseRetryAfter("Sun Nov  6 08:49:37 1994", now)).toBe(37_000)
    expect(parseRetryAfter("Sun, 06 Nov 1994 08:48:00 GMT", now)).toBe(0)
    for (const nonsense of [
      "",
      "-2",
      "+1",
      "1e3",
      "120, 60",
      "2026-01-01",
      "tomorrow",
      "Sun, 99 Nov 1994 08:49:37 GMT"
    ]) {
      expect(parseRetryAfter(nonsense, now), nonsense).toBeNull()
    }
  })
})

describe("Any retry schedule", () => {
  const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

  it.prop(
    "A schedule makes at most 1 + count attempts, in order, within 7 days, each wait within 10 %",
    {
      strategy: Schema.Literals(["linear", "exponential"]),
      count: between(1, 50),
      interval: between(1_000, 604_800_000),
      random: between(0, 999)
    },
    ({ strategy, count, interval, random }) => {
      const policy = policyOf({ strategy, count, interval })
      let now = start
      let attempts = 1
      for (;;) {
        const next = nextRetry(policy, attempts, failed(500), now, start, random / 1_000)
        if (next.final) {
          expect(next.reason === "WINDOW_PASSED" || attempts === count + 1).toBe(true)
          break
        }
        const nominal = strategy === "linear" ? interval : interval * 2 ** (attempts - 1)
        const slack = interval < 5_000 ? 0 : nominal / 10 + 1
        expect(Math.abs(next.retryAt - now - nominal)).toBeLessThanOrEqual(slack)
        expect(next.retryAt).toBeGreaterThan(now)
        expect(next.retryAt - start).toBeLessThanOrEqual(retryWindow)
        now = next.retryAt
        attempts++
      }
      expect(attempts).toBeLessThanOrEqual(1 + count)
    },
    { arbitrary: { runs: 500 } }
  )
})

describe("Day of retries", () => {
  it.effect("A day of retries makes each attempt when it is due, in virtual time", () =>
    Effect.gen(function* () {
      const policy = policyOf({ strategy: "exponential", count: 11, interval: 60_000 })
      const attempts: Array<number> = []
      const deliver = Effect.gen(function* () {
        const first = yield* Clock.currentTimeMillis
        for (;;) {
          const now = yield* Clock.currentTimeMillis
          attempts.push((now - first) / 60_000)
          const answer = attempts.length === 4 ? failed(503, "3600") : failed(attempts.length % 2 === 0 ? null : 500)
          const next = nextRetry(policy, attempts.length, answer, now, first, middle)
          if (next.final) return next.reason
          yield* Effect.sleep(next.retryAt - now)
        }
      })
      const fiber = yield* Effect.forkChild(deliver)
      yield* TestClock.adjust("1 hour")
      expect(attempts).toStrictEqual([0, 1, 3, 7])
      yield* TestClock.adjust("1 day")
      expect(attempts).toStrictEqual([0, 1, 3, 7, 67, 83, 115, 179, 307, 563, 1_075])
      yield* TestClock.adjust("1 day")
      expect(yield* Fiber.join(fiber)).toBe("EXHAUSTED")
      expect(attempts.length).toBe(12)
      expect(attempts.at(-1)).toBe(1_075 + 1_024)
    })
  )
})

describe("Wait that an answer asks for", () => {
  const sentAt = Date.UTC(2026, 0, 1, 12)

  it("A wait is a number of seconds, or a date that counts from the answer's own", () => {
    expect(askedWait("120", sentAt)).toBe(120_000)
    expect(askedWait("1.5", sentAt)).toBe(1_500)
    expect(askedWait("Thu, 01 Jan 2026 12:00:30 GMT", sentAt)).toBe(30_000)
  })

  it("A wait that is past, unknown or without the answer's date is none", () => {
    expect(askedWait("Thu, 01 Jan 2026 11:59:30 GMT", sentAt)).toBeNull()
    expect(askedWait("Thu, 01 Jan 2026 12:00:30 GMT", Number.NaN)).toBeNull()
    expect(askedWait("soon", sentAt)).toBeNull()
    expect(askedWait("-1", Number.NaN)).toBeNull()
  })
})
