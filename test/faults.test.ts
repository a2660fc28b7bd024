import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { shortForm } from "./faults/Faults.ts"
import { hold } from "./faults/Round.ts"
import { openWorld, type OpenWorld } from "./faults/Series.ts"

/**
 * A few rounds of the crash test, with little load and, because a machine may be busy with other work, twelve times the time
 * between deliveries; `npm run test:faults` is the whole of it.
 */
describe("Gateway whose processes are killed", () => {
  let opened: OpenWorld

  beforeAll(async () => {
    opened = await openWorld("cluster", { perSecond: 60 }, 12)
  })

  afterAll(async () => {
    expect(await opened.close()).toEqual([])
  })

  it.for(shortForm)("The gateway loses and repeats nothing after $name", async (fault) => {
    const { figures, findings } = await hold(opened.world, fault)
    expect(findings.lines).toEqual([])
    expect(figures?.acknowledged).toBeGreaterThan(0)
  })
})
