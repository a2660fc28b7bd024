import { describe, expect, it } from "@effect/vitest"
import { makeStrikes } from "../src/Strikes.ts"

describe("Strikes against code", () => {
  it("Code is rejected after its third kill, twice as long each time, up to an hour", () => {
    let now = 0
    const strikes = makeStrikes(() => now)
    strikes.strike("a", "TIMEOUT")
    strikes.strike("a", "TIMEOUT")
    expect(strikes.refusal("a")).toBe(null)
    const refusals = []
    for (let i = 0; i < 12; i++) {
      strikes.strike("a", "MEMORY_LIMIT")
      const refusal = strikes.refusal("a")
      expect(refusal?.offence).toBe("MEMORY_LIMIT")
      refusals.push((refusal?.waitMs ?? 0) / 1_000)
      now += refusal?.waitMs ?? 0
      expect(strikes.refusal("a")).toBe(null)
    }
    expect(refusals).toEqual([10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600])
    expect(strikes.refusal("b")).toBe(null)
  })

  it("Strikes are forgotten after two hours without a kill", () => {
    let now = 0
    const strikes = makeStrikes(() => now)
    for (let i = 0; i < 3; i++) strikes.strike("a", "TIMEOUT")
    now += 7_200_001
    strikes.strike("a", "TIMEOUT")
    expect(strikes.refusal("a")).toBe(null)
  })

  it("Strikes are kept for the last ten thousand codes", () => {
    const strikes = makeStrikes(() => 0)
    for (let i = 0; i < 3; i++) strikes.strike("first", "TIMEOUT")
    for (let i = 0; i < 9_999; i++) strikes.strike(`k${i}`, "TIMEOUT")
    expect(strikes.refusal("first")).not.toBe(null)
    strikes.strike("one more", "TIMEOUT")
    expect(strikes.refusal("first")).toBe(null)
  })
})
