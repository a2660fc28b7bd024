import { describe, expect, it } from "vitest"
import { ceiling, floor, isCrowded, lookAgain, type Pace, Pacing, Steps } from "../src/BulkOperation/Pace.ts"

const perSecond = ({ batch, overMs }: Pace): number => (batch * 1_000) / overMs

const live = (requests: number, waitMs: number | null = 3) => ({ requests, waitMs })

/** The pace after so many steps beside live traffic, each look of which took so long, and whose events waited so long. */
const after = (pacing: Pacing, steps: number, lookMs: number, waitMs: number | null = 3, requests = 20): number => {
  let pace = pacing.next(live(requests, waitMs), lookMs)
  for (let n = 1; n < steps; n++) pace = pacing.next(live(requests, waitMs), lookMs)
  return perSecond(pace)
}

describe("Pace of bulk operations", () => {
  it("A bulk operation makes no pause between steps without live traffic", () => {
    const pacing = new Pacing()
    expect(pacing.next(live(0), 1).overMs).toBe(0)
    expect(pacing.next(live(1), 1).overMs).toBeGreaterThan(0)
  })

  it("The pace is the same beside little and much live traffic that is not delayed", () => {
    const [beside1, beside20] = [new Pacing(), new Pacing()]
    expect(after(beside1, 500, 1, 3, 1)).toBe(after(beside20, 500, 1, 3, 20))
    expect(after(beside20, 1, 1)).toBe(ceiling)
  })

  it("The pace finishes 100,000 targets within ten minutes, even if live traffic is delayed", () => {
    const pacing = new Pacing()
    after(pacing, 100, 1)
    expect(after(pacing, 500, 1_000, 1_000)).toBe(floor)
    expect(100_000 / floor).toBeLessThan(600)
    expect(after(new Pacing(), 1, 1)).toBeGreaterThanOrEqual(floor)
  })

  it("The pace falls when checks take longer than usual and grows again afterwards", () => {
    const pacing = new Pacing()
    const fast = after(pacing, 500, 1)
    expect(after(pacing, 5, 60)).toBeLessThan(fast / 2)
    expect(after(pacing, 100, 1)).toBe(fast)
  })

  it("The pace falls when live events wait longer than usual, however fast the checks are", () => {
    const pacing = new Pacing()
    const fast = after(pacing, 500, 1)
    expect(after(pacing, 20, 1, 80)).toBe(floor)
    expect(after(pacing, 200, 1)).toBe(fast)
  })

  it("Small variations do not change the pace", () => {
    const pacing = new Pacing()
    for (let n = 0; n < 500; n++) pacing.next(live(20, n % 3 === 0 ? 9 : 2), n % 4 === 0 ? 6 : 1)
    expect(after(pacing, 1, 5, 8)).toBe(ceiling)
  })

  it("A lasting slowdown becomes the new normal for the pace", () => {
    const pacing = new Pacing()
    const fast = after(pacing, 500, 1)
    expect(after(pacing, 20, 40)).toBeLessThan(fast)
    expect(after(pacing, 3_000, 40)).toBe(fast)
  })

  it("A bulk operation waits while more than half of its queued events still wait", () => {
    expect(isCrowded(0, 0)).toBe(false)
    expect(isCrowded(5, 10)).toBe(false)
    expect(isCrowded(6, 10)).toBe(true)
    expect(isCrowded(1, 1)).toBe(true)
  })

  it("The checks become rarer, but happen at least once a second", () => {
    const times = [0, 1, 2, 3, 20].map(lookAgain)
    expect(times).toEqual([25, 50, 100, 200, 1_000])
  })
})

describe("Steps of a bulk operation", () => {
  it("Steps keep their rate when some are late, and catch up at most one step", () => {
    const steps = new Steps()
    expect(steps.rest(0, 100, 20, 100)).toBe(80)
    // It began late, and took long: the next one follows at once.
    expect(steps.rest(130, 100, 210, 100)).toBe(0)
    expect(steps.rest(210, 100, 220, 100)).toBe(80)
    // After a long wait nothing is owed but one step.
    expect(steps.rest(10_000, 100, 10_010, 100)).toBe(0)
    expect(steps.rest(10_010, 100, 10_020, 100)).toBe(80)
  })

  it("Steps never exceed their own rate over any time", () => {
    const steps = new Steps()
    const began = 1_000_000
    let now = began
    let done = 0
    // 50 a second, ten at a time, by a clock of its own.
    while (now < began + 10_000) {
      done += 10
      now += 3 + steps.rest(now, 200, now, 200)
    }
    expect(done).toBeLessThanOrEqual(510)
    expect(done).toBeGreaterThanOrEqual(490)
  })
})
