import { expect, it } from "vitest"
import { RunPace } from "../src/Workflow/RunPace.ts"

const paced = () => {
  const world = { now: 0, isSlow: false }
  const pace = new RunPace(
    () => world.isSlow,
    () => world.now
  )
  /** So many workflows take on what they may for so long (ms), each looking every 10 ms; answers how many runs each has. */
  const takeOn = (ms: number, workflows = 1): ReadonlyArray<number> => {
    const each = Array.from({ length: workflows }, () => ({ taken: 0, before: Number.NEGATIVE_INFINITY }))
    for (const end = world.now + ms; world.now < end; world.now += 10) {
      for (const [i, one] of each.entries()) {
        const most = pace.most(`wfl_${i}`, 50, one.before)
        if (most > 0) one.before = world.now
        one.taken += most
      }
    }
    return each.map(({ taken }) => taken)
  }
  return { world, takeOn }
}

it("Runs are not paced while requests are stored as quickly as they can be", () => {
  expect(paced().takeOn(1_000)).toEqual([100 * 50])
})

it("A workflow takes on few runs, and some all the same, while requests go on being stored slowly", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  expect(takeOn(1_000)).toEqual([5 * 4])
})

it("Runs are not paced any more a few seconds after requests are stored quickly again", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.isSlow = false
  takeOn(2_000)
  expect(takeOn(1_000)).toEqual([100 * 50])
})

it("While requests are stored slowly, a hundred workflows take on no more than two alone, and all take their turns", () => {
  for (const workflows of [2, 7, 100]) {
    const { takeOn, world } = paced()
    world.isSlow = true
    takeOn(2_000, workflows)
    const taken = takeOn(100_000, workflows)
    const sum = taken.reduce((all, one) => all + one, 0)
    expect(sum).toBeGreaterThan(3_000)
    expect(sum).toBeLessThanOrEqual(4_400)
    expect(Math.max(...taken) - Math.min(...taken)).toBeLessThanOrEqual(4)
  }
})

it("A workflow that has nothing left to take on does not slow down the others", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000, 20)
  takeOn(1_500, 2)
  expect(takeOn(1_000, 2)).toEqual([5 * 4, 5 * 4])
})
