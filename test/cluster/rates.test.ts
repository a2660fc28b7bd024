import { describe, expect } from "vitest"
import { it } from "../support/it.ts"
import { maxInWindow, RateRun, sleepAndCount } from "./RateRun.ts"

const times = (starts: ReadonlyArray<{ readonly at: number }>): ReadonlyArray<number> => starts.map(({ at }) => at)

/** How many of `count` starts there must be, where a timer had this share of its turns: on a busy machine, fewer still. */
const used = (count: number, share: number): number => (share > 0.9 ? count : (count * share) / 3)

// The tests run at the same time, each on processes and a database of its own.
describe("Rate limit of a destination", () => {
  it.concurrent("A rate limit holds in every window, is used fully, and is shared equally by waiting connections", async ({
    running
  }) => {
    const gateways = await running({ a: "all" })
    const run = await RateRun.make(gateways, "a", { name: "paced", limit: 20, period: "second", connections: 5 })
    // The first backlog is there before the others, ten times as long, and longer than a window.
    await run.send("a", [1_500, 150, 150, 150, 150])
    const began = Date.now()
    const share = await sleepAndCount(5_000, 50)
    const all = await run.starts()
    const starts = all.filter(({ at }) => at >= began && at < began + 5_000)
    expect(maxInWindow(times(all), 1_000)).toBeLessThanOrEqual(20)
    await run.recorded(0)
    // On a quiet machine 95 % and more; a busy one comes late to its slots, which says nothing about the limit.
    expect(starts.length).toBeGreaterThanOrEqual(used(0.8 * 20 * 5, share))
    for (const connection of run.connections) {
      const share = starts.filter((start) => start.connection === connection).length
      expect(Math.abs(share - starts.length / 5)).toBeLessThanOrEqual(3)
    }
    await run.target.close()
  })

  it.concurrent("A changed rate limit applies as soon as the change returns, up and down", async ({ running }) => {
    const gateways = await running({ a: "all", b: "all" })
    const run = await RateRun.make(gateways, "a", { name: "changing", limit: 20, period: "second", connections: 2 })
    await run.send("b", [300, 300])
    await sleepAndCount(1_500, 50)
    const up = await run.setRate("b", 80)
    const upShare = await sleepAndCount(2_000, 12)
    const down = await run.setRate("a", 10)
    const downShare = await sleepAndCount(3_000, 100)
    const all = times(await run.starts())
    await run.recorded(0)
    const until = (at: number): ReadonlyArray<number> => all.filter((start) => start <= at)
    const after = (at: number): ReadonlyArray<number> => all.filter((start) => start > at)
    expect(maxInWindow(until(up.askedAt), 1_000)).toBeLessThanOrEqual(20)
    expect(maxInWindow(all, 1_000)).toBeLessThanOrEqual(80)
    expect(maxInWindow(after(down.returnedAt), 1_000)).toBeLessThanOrEqual(10)
    // The twenty of the second before count as well.
    const raised = after(up.returnedAt).filter((at) => at <= up.returnedAt + 2_000)
    expect(raised.length).toBeGreaterThanOrEqual(used(0.9 * 2 * 80 - 20, upShare))
    expect(after(down.returnedAt + 1_000).length).toBeGreaterThanOrEqual(used(0.9 * 2 * 10 - 1, downShare))
    await run.target.close()
  })
})
