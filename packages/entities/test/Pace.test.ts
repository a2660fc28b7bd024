import { describe, expect, it } from "vitest"
import { isCrowded, lookAgain, paceAt } from "../src/BulkOperation/Pace.ts"

describe("the pace of a bulk operation", () => {
  it("leaves nine tenths of the time to live traffic, and half of it to nobody", () => {
    for (const took of [10, 50, 200]) {
      const busy = paceAt(20).rest(took)
      expect(took / (took + busy)).toBeLessThanOrEqual(0.2)
      expect(paceAt(0).rest(took)).toBe(took)
    }
    expect(paceAt(20).batch).toBeLessThan(paceAt(0).batch)
  })

  it("goes on after two seconds, however long a step took", () => {
    expect(paceAt(20).rest(60_000)).toBe(2_000)
  })

  it("waits while more than half of what was queued is still waiting", () => {
    expect(isCrowded(0, 0)).toBe(false)
    expect(isCrowded(5, 10)).toBe(false)
    expect(isCrowded(6, 10)).toBe(true)
    expect(isCrowded(1, 1)).toBe(true)
  })

  it("looks rarer and rarer, and once a second at the least", () => {
    const times = [0, 1, 2, 3, 20].map(lookAgain)
    expect(times).toEqual([25, 50, 100, 200, 1_000])
  })
})
