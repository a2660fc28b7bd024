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

it("Runs are not paced while requests are stored as quickly as they can be", () => {
  expect(all(paced().takeOn(1_000))).toBe(100 * usual)
})

it("A workflow takes on few runs, and some all the same, while requests go on being stored slowly", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  expect(all(takeOn(1_000))).toBe(100)
})

it("Runs are taken on in small numbers, and by one workflow at a time, from the first slow look on", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  const looks = takeOn(100, 6)
  expect(Math.max(...looks.map(sum))).toBeLessThanOrEqual(20)
  for (const look of looks) expect(look.filter((runs) => runs > 0).length).toBeLessThanOrEqual(1)
})

it("Runs are not paced any more a few seconds after requests are stored quickly again", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.isSlow = false
  takeOn(3_000)
  expect(all(takeOn(1_000))).toBe(100 * usual)
})

it("While requests are stored slowly, a hundred workflows take on no more than one alone, and all take their turns", () => {
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

it("A workflow that has nothing left to take on does not slow down the others", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000, 20)
  takeOn(1_500, 2)
  const [one, other] = each(takeOn(10_000, 2))
  expect(one! + other!).toBeGreaterThan(900)
  expect(Math.abs(one! - other!)).toBeLessThanOrEqual(50)
})

it("A workflow that has found no runs keeps no other waiting", () => {
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
