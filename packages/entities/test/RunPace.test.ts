import { expect, it } from "vitest"
import { RunPace } from "../src/Workflow/RunPace.ts"

const usual = 50

const paced = () => {
  const world = { now: 0, isSlow: false }
  const pace = new RunPace(
    () => world.isSlow,
    () => world.now
  )
  /** So many workflows take on what they may for so long (ms), each looking every 10 ms; answers how many runs each took at each look. */
  const takeOn = (ms: number, workflows = 1): ReadonlyArray<ReadonlyArray<number>> => {
    const looks: Array<ReadonlyArray<number>> = []
    for (const end = world.now + ms; world.now < end; world.now += 10) {
      looks.push(Array.from({ length: workflows }, (_, i) => pace.take(`wfl_${i}`, usual)))
    }
    return looks
  }
  return { world, pace, takeOn }
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((all, one) => all + one, 0)
/** Runs of each workflow. */
const each = (looks: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> =>
  looks[0]!.map((_, i) => sum(looks.map((look) => look[i]!)))
const all = (looks: ReadonlyArray<ReadonlyArray<number>>): number => sum(each(looks))

it("Runs are not slowed down while requests are stored as fast as possible", () => {
  expect(all(paced().takeOn(1_000))).toBe(100 * usual)
})

it("A workflow starts few runs, but some, while requests are stored slowly", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  expect(all(takeOn(1_000))).toBe(100)
})

it("Runs start in small numbers and one workflow at a time from the first slow check on", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  const looks = takeOn(100, 6)
  expect(Math.max(...looks.map(sum))).toBeLessThanOrEqual(20)
  for (const look of looks) expect(look.filter((runs) => runs > 0).length).toBeLessThanOrEqual(1)
})

it("Runs are no longer slowed down a few seconds after requests are stored fast again", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.isSlow = false
  takeOn(3_000)
  expect(all(takeOn(1_000))).toBe(100 * usual)
})

it("After the lowest rate, runs are no longer slowed down within three quarters of a second in which nothing is slow", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.isSlow = false
  takeOn(750)
  expect(all(takeOn(1_000))).toBe(100 * usual)
})

it("The rate of runs rises slowly while requests are still stored slowly at times", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  for (let time = 0; time < 20; time++) {
    world.isSlow = false
    takeOn(150)
    world.isSlow = true
    takeOn(50)
  }
  // Three checks raise the rate by a third, and the fourth takes it back.
  expect(all(takeOn(1_000))).toBeLessThan(120)
})

it("A hundred workflows together start no more runs than one while requests are stored slowly, and all take turns", () => {
  for (const workflows of [1, 2, 7, 100]) {
    const { takeOn, world } = paced()
    world.isSlow = true
    takeOn(2_000, workflows)
    const taken = each(takeOn(100_000, workflows))
    expect(sum(taken)).toBeGreaterThan(9_000)
    expect(sum(taken)).toBeLessThanOrEqual(10_004)
    expect(Math.max(...taken) - Math.min(...taken)).toBeLessThanOrEqual(sum(taken) / workflows / 4)
  }
})

it("A workflow without more runs does not slow down the others", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000, 20)
  takeOn(1_500, 2)
  const [one, other] = each(takeOn(10_000, 2))
  expect(one! + other!).toBeGreaterThan(900)
  expect(Math.abs(one! - other!)).toBeLessThanOrEqual(50)
})

it("A workflow that found no runs does not delay another", () => {
  const { pace, takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.now += 1_000
  expect(pace.take("wfl_1", usual)).toBe(4)
  const runs = pace.take("wfl_2", usual)
  expect(runs).toBe(4)
  expect(pace.waitMs("wfl_3")).toBeGreaterThan(0)
  pace.giveBack("wfl_2", runs)
  expect(pace.waitMs("wfl_3")).toBe(0)
})
