import { describe, expect } from "vitest"
import { it } from "../support/it.ts"
import { maxInWindow, RateRun } from "./RateRun.ts"

/** What a rate limit must not exceed while its owner changes. How much of it is used is measured by another suite, alone. */

describe("Rate limit of a destination whose owner changes", () => {
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    it.concurrent(`A rate limit holds after a takeover and after a restart (${signal})`, async ({ running }) => {
      const gateways = await running({ a: "all", b: "all" })
      const connections = 5
      const second = await RateRun.make(gateways, "a", { name: "second", limit: 20, period: "second", connections })
      const minute = await RateRun.make(gateways, "a", { name: "minute", limit: 30, period: "minute", connections })
      await second.send("a", Array(connections).fill(150))
      await minute.send("b", Array(connections).fill(20))
      await second.deliveries(20)
      await minute.deliveries(1)
      for (const owner of new Set([second.owner(), minute.owner()])) {
        await gateways.process(owner).end(signal)
        await gateways.process(owner).start()
      }
      await second.deliveries(60)
      await minute.deliveries(2)
      for (const [run, limit, period] of [
        [second, 20, 1_000],
        [minute, 30, 60_000]
      ] as const) {
        const starts = (await run.starts()).map(({ at }) => at)
        expect(maxInWindow(starts, period)).toBeLessThanOrEqual(limit)
        // Those that the killed process had under way.
        await run.recorded(10)
        await run.target.close()
      }
    })
  }
})
