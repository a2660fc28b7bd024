import { describe, expect, it } from "vitest"
import { Random } from "../../packages/entities/test/Random.ts"
import { faultsOf, move, type Run, type Step, steps } from "../src/CellMove.ts"

const runs = 2_000

const seeded = (seed: number): (() => number) => {
  const random = new Random(seed)
  return () => random.next()
}

/** The faults of many moves that `change` makes different. */
const faults = (seed: number, change: Partial<Run>): ReadonlyArray<string> => {
  const random = seeded(seed)
  return Array.from({ length: runs }, () => faultsOf(move({ random, requests: 30, crashes: true, ...change }))).flat()
}

describe("Move of a team between cells", () => {
  it("A move loses nothing, repeats only what a death interrupted, and keeps the order of each key", () => {
    expect(faults(1, {})).toEqual([])
    expect(faults(2, { crashes: false })).toEqual([])
  })

  it("A move is carried out while requests arrive: both cells deliver, and some senders are asked to come again", () => {
    const random = seeded(3)
    const outcomes = Array.from({ length: 200 }, () => move({ random, requests: 30, crashes: true }))
    expect(outcomes.every(({ acknowledged }) => acknowledged.length === 30)).toBe(true)
    expect(new Set(outcomes.flatMap(({ delivered }) => delivered.map(({ by }) => by)))).toEqual(new Set(["A", "B"]))
    expect(outcomes.some(({ refused }) => refused > 0)).toBe(true)
    expect(outcomes.some(({ interrupted }) => interrupted.size > 0)).toBe(true)
  })

  it("The model finds steps in a wrong order, and a cell that forgets what it has delivered", () => {
    const swapped = (one: Step, other: Step) =>
      steps.map((step) => (step === one ? other : step === other ? one : step))
    // B delivers before the queue of A has arrived, or while A goes on.
    expect(faults(4, { order: swapped("move queue", "start B") }).join()).toContain("out of order")
    expect(faults(5, { order: swapped("stop A", "start B") }).join()).toContain("out of order")
    // B has delivered an event that A did not delete before it died.
    const forgetful = { remembers: false, order: [...steps.slice(0, 4), "start B", "move queue"] as const }
    expect(faults(6, forgetful).join()).toContain("times, and nobody died")
  })
})
