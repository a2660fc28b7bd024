import { describe, expect, it } from "vitest"
import { failover } from "./faults/Failover.ts"

describe("Failover of the database under load", () => {
  it("Gateway loses nothing that it has acknowledged when a synchronous standby is promoted", async () => {
    const { acknowledgedAlone, ended, lost, statuses } = await failover(true)
    expect(lost).toEqual({ before: 0, alone: 0, lost: 0, after: 0 })
    // No commit ended while the standby was away.
    expect(acknowledgedAlone).toBe(0)
    expect(statuses).toEqual([200, 503])
    expect(ended).toEqual([])
  })
})
