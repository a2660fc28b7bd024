import { describe, expect, it } from "@effect/vitest"
import { Allowances } from "../src/limits/Allowances.ts"

const start = 1_700_000_000_000
const windowMs = 60_000
const limited = (calls: number, maxKeys = 10) => new Allowances({ name: "calls", calls, windowMs, maxKeys })

describe("Allowances of rate limits", () => {
  it("Rate limit allows all calls of a minute at once and then one per share of the minute", () => {
    const calls = limited(60)
    for (let left = 59; left >= 0; left--) {
      const verdict = calls.take("a", start)
      expect(verdict).toMatchObject({ allowed: true, limit: 60, remaining: left, retryMs: 0 })
    }
    const over = calls.take("a", start)
    expect(over).toStrictEqual({ allowed: false, limit: 60, windowMs, remaining: 0, resetMs: windowMs, retryMs: 1_000 })
    expect(calls.take("a", start + 999).allowed).toBe(false)
    expect(calls.take("a", start + 1_000).allowed).toBe(true)
    expect(calls.take("b", start).allowed).toBe(true)
  })

  it("Refused call uses nothing of a rate limit", () => {
    const calls = limited(1)
    expect(calls.take("a", start).allowed).toBe(true)
    for (let i = 0; i < 100; i++) expect(calls.take("a", start + 30_000).allowed).toBe(false)
    expect(calls.take("a", start + windowMs).allowed).toBe(true)
  })

  it("Rate limit allows exactly its number of calls in the first minute and in the next", () => {
    for (const perMinute of [1, 2, 3, 7, 60, 61, 999, 6_000]) {
      const calls = limited(perMinute)
      let allowed = 0
      for (let i = 0; i < perMinute + 5; i++) if (calls.take("a", start).allowed) allowed++
      expect(allowed).toBe(perMinute)
      let again = 0
      for (let ms = 1; ms <= windowMs; ms++) if (calls.take("a", start + ms).allowed) again++
      expect(again).toBe(perMinute)
    }
  })

  it("Rate limit delays nobody for more than a minute after the clock was set back", () => {
    const calls = limited(2)
    calls.take("a", start)
    calls.take("a", start)
    expect(calls.take("a", start - 3_600_000).retryMs).toBeLessThanOrEqual(windowMs)
    expect(calls.take("a", start - 3_600_000 + windowMs).allowed).toBe(true)
  })

  it("Rate limiter keeps a limited number of keys, and no key loses its count to others", () => {
    const maxKeys = 1_000
    const calls = limited(60, maxKeys)
    for (let i = 0; i < 60; i++) calls.take("guesser", start)
    expect(calls.take("guesser", start).allowed).toBe(false)
    let strangers = 0
    for (let i = 0; i < 50_000; i++) {
      if (calls.take(`stranger ${i}`, start + (i % 2)).allowed) strangers++
      expect(calls.size).toBeLessThanOrEqual(maxKeys)
    }
    expect(calls.take("guesser", start + 10).allowed).toBe(false)
    // Those without a place share one allowance.
    expect(strangers).toBe(maxKeys - 1 + 60)
    // A place is given away when its key has its whole allowance again.
    expect(calls.take("a newcomer", start + 2_000).allowed).toBe(true)
    expect(calls.size).toBe(2)
    expect(calls.take("guesser", start + 10).allowed).toBe(false)
  })
})

describe("Keys with different rate limits", () => {
  const of = (calls: number) => ({ name: "calls", calls, windowMs, maxKeys: 10 })
  const left = (allowances: Allowances, key: string, calls: number, at = start) => {
    let allowed = 0
    while (allowances.take(key, at, of(calls)).allowed) allowed++
    return allowed
  }

  it("Each key is counted by its own rate limit", () => {
    const allowances = limited(1)
    for (const calls of [1, 7, 240, 10_000]) expect(left(allowances, `key of ${calls}`, calls)).toBe(calls)
  })

  it("Changed rate limit keeps the used fraction of the window", () => {
    const allowances = limited(1)
    for (let i = 0; i < 50; i++) allowances.take("a", start, of(100))
    expect(allowances.take("a", start, of(10))).toMatchObject({ allowed: true, limit: 10, remaining: 4 })
    expect(left(allowances, "a", 1_000)).toBe(400)
    expect(left(allowances, "a", 1)).toBe(0)
    expect(allowances.take("a", start + windowMs, of(1)).allowed).toBe(true)
  })

  it("Limiter that learns a refusal from another process refuses by the limit that it learned", () => {
    const allowances = limited(1)
    const other = limited(1)
    for (let i = 0; i < 5; i++) allowances.learn("a", start, other.take("a", start, of(5)), of(5))
    expect(allowances.refusal("a", start, of(5))).toMatchObject({ allowed: false, limit: 5, remaining: 0 })
    expect(allowances.refusal("a", start + windowMs / 5, of(5))).toBe(null)
  })
})
