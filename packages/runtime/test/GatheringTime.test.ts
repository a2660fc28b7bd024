import { describe, expect, it } from "vitest"
import { GatheringTime } from "../src/GatheringTime.ts"

const after = (...took: ReadonlyArray<number>): GatheringTime => {
  const gathering = new GatheringTime()
  for (const [now, ms] of took.entries()) gathering.took(ms, now)
  return gathering
}

describe("Gathering time before the next batch", () => {
  it("The gathering time is zero while batches take about as long as the fastest one", () => {
    expect(new GatheringTime().ms).toBe(0)
    expect(after(1).ms).toBe(0)
    expect(after(1, 2, 3, 4, 3, 4).ms).toBe(0)
    expect(after(9, 9, 9, 9, 9).ms).toBe(0)
  })

  it("The gathering time is the shortest of the last batch times once all of these are slow", () => {
    expect(after(1, 8, 8, 8).ms).toBe(0)
    expect(after(1, 8, 7, 9, 8).ms).toBe(7)
    expect(after(1, 8, 8, 8, 8, 2).ms).toBe(0)
  })

  it("The gathering time has a maximum, however slow the batches are", () => {
    expect(after(1, 900, 900, 900, 900).ms).toBe(16)
  })

  it("The gathering time returns to zero when slow batches have been the fastest for long", () => {
    const gathering = after(1, 8, 8, 8, 8)
    gathering.took(8, 700_000)
    expect(gathering.ms).toBe(8)
    gathering.took(8, 1_400_000)
    expect(gathering.ms).toBe(0)
  })
})
