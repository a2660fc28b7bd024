import { assert, describe, it } from "@effect/vitest"
import { Allowances, windowMs } from "../src/RateLimit.ts"

const start = 1_700_000_000_000

describe("Allowances", () => {
  it("lets all calls of a minute come at once, then one as each share of it has passed", () => {
    const calls = new Allowances({ perMinute: 60, mostKeys: 10 })
    for (let left = 59; left >= 0; left--) {
      const verdict = calls.take("a", start)
      assert.deepInclude(verdict, { allowed: true, limit: 60, remaining: left, retryMs: 0 })
    }
    const over = calls.take("a", start)
    assert.deepStrictEqual(over, { allowed: false, limit: 60, remaining: 0, resetMs: windowMs, retryMs: 1_000 })
    assert.isFalse(calls.take("a", start + 999).allowed)
    assert.isTrue(calls.take("a", start + 1_000).allowed)
    assert.isTrue(calls.take("b", start).allowed)
  })

  it("what is refused uses nothing", () => {
    const calls = new Allowances({ perMinute: 1, mostKeys: 10 })
    assert.isTrue(calls.take("a", start).allowed)
    for (let i = 0; i < 100; i++) assert.isFalse(calls.take("a", start + 30_000).allowed)
    assert.isTrue(calls.take("a", start + windowMs).allowed)
  })

  it("allows no more than its limit in any minute it begins with, and as many again in the next, whatever the limit", () => {
    for (const perMinute of [1, 2, 3, 7, 60, 61, 999, 6_000]) {
      const calls = new Allowances({ perMinute, mostKeys: 10 })
      let allowed = 0
      for (let i = 0; i < perMinute + 5; i++) if (calls.take("a", start).allowed) allowed++
      assert.strictEqual(allowed, perMinute)
      let again = 0
      for (let ms = 1; ms <= windowMs; ms++) if (calls.take("a", start + ms).allowed) again++
      assert.strictEqual(again, perMinute)
    }
  })

  it("a clock that was set back keeps nobody waiting for more than a minute", () => {
    const calls = new Allowances({ perMinute: 2, mostKeys: 10 })
    calls.take("a", start)
    calls.take("a", start)
    assert.isAtMost(calls.take("a", start - 3_600_000).retryMs, windowMs)
    assert.isTrue(calls.take("a", start - 3_600_000 + windowMs).allowed)
  })

  it("keeps at most so many keys, and none loses its count to the others", () => {
    const mostKeys = 1_000
    const calls = new Allowances({ perMinute: 60, mostKeys })
    for (let i = 0; i < 60; i++) calls.take("guesser", start)
    assert.isFalse(calls.take("guesser", start).allowed)
    let strangers = 0
    for (let i = 0; i < 50_000; i++) {
      if (calls.take(`stranger ${i}`, start + (i % 2)).allowed) strangers++
      assert.isAtMost(calls.size, mostKeys)
    }
    assert.isFalse(calls.take("guesser", start + 10).allowed)
    // Those without a place share one allowance.
    assert.strictEqual(strangers, mostKeys - 1 + 60)
    // A place is given away when its key has its whole allowance again.
    assert.isTrue(calls.take("a newcomer", start + 2_000).allowed)
    assert.strictEqual(calls.size, 2)
    assert.isFalse(calls.take("guesser", start + 10).allowed)
  })
})
