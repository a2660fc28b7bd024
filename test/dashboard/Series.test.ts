import { describe, expect, it } from "vitest"
import { eventBars, waitingIn } from "../../apps/dashboard/src/parts/Series.ts"

const bucket = {
  timestamp: "2026-01-01T00:00:00.000Z",
  count: 21,
  delivered_count: 6,
  failed_count: 5,
  queued_count: 4,
  processing_count: 2,
  hold_count: 1
}

describe("Bars of the dashboard", () => {
  it("Waiting events are those that are queued, under way or on hold, and cancelled ones have a part of their own", () => {
    expect(waitingIn(bucket)).toBe(7)
    expect(eventBars([bucket])[0]?.parts).toEqual([
      { tone: "good", count: 6 },
      { tone: "bad", count: 5 },
      { tone: "plain", count: 7 },
      { tone: "off", count: 3 }
    ])
  })
})
