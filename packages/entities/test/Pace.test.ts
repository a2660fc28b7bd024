import { describe, expect, it } from "vitest"
import { isCrowded, lookAgain, type Pace, Pacing } from "../src/BulkOperation/Pace.ts"

const perSecond = ({ batch, overMs }: Pace): number => (batch * 1_000) / overMs

/** The pace after so many steps beside live traffic, each look of which took so long. */
const after = (pacing: Pacing, steps: number, lookMs: number): number => {
  let pace = pacing.next(100, lookMs)
  for (let n = 1; n < steps; n++) pace = pacing.next(100, lookMs)
  return perSecond(pace)
}

describe("the pace of bulk operations", () => {
  it("leaves nothing between steps that nobody else waits for", () => {
    const pacing = new Pacing()
    expect(pacing.next(4, 1).overMs).toBe(0)
    expect(pacing.next(5, 1).overMs).toBeGreaterThan(0)
  })

  it("grows beside live traffic that feels nothing, up to a bound", () => {
    const pacing = new Pacing()
    expect(after(pacing, 1, 1)).toBeLessThan(100)
    expect(after(pacing, 1_000, 1)).toBeGreaterThan(150)
    expect(after(pacing, 1_000, 1)).toBe(after(pacing, 1, 1))
  })

  it("falls where looks take longer than usual, to what it goes on with at the least", () => {
    const pacing = new Pacing()
    const fast = after(pacing, 1_000, 1)
    const slower = after(pacing, 20, 10)
    expect(slower).toBeLessThan(fast / 2)
    const least = after(pacing, 30, 10)
    expect(least).toBeGreaterThan(0)
    expect(after(pacing, 1, 1_000)).toBe(least)
  })

  it("comes to take for usual what stays", () => {
    const pacing = new Pacing()
    const fast = after(pacing, 1_000, 1)
    expect(after(pacing, 20, 10)).toBeLessThan(fast)
    expect(after(pacing, 2_000, 10)).toBe(fast)
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
