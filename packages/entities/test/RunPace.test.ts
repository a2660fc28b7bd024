import { expect, it } from "vitest"
import { RunPace } from "../src/Workflow/RunPace.ts"

const paced = () => {
  const world = { now: 0, isSlow: false }
  const pace = new RunPace(
    () => world.isSlow,
    () => world.now
  )
  /** Takes on what a workflow may for so long (ms), looking every 10 ms. */
  const takeOn = (ms: number): number => {
    let [taken, before] = [0, Number.NEGATIVE_INFINITY]
    for (const end = world.now + ms; world.now < end; world.now += 10) {
      const most = pace.most(50, before)
      if (most > 0) before = world.now
      taken += most
    }
    return taken
  }
  return { world, takeOn }
}

it("Runs are not paced while requests are stored as quickly as they can be", () => {
  expect(paced().takeOn(1_000)).toBe(100 * 50)
})

it("A workflow takes on few runs, and some all the same, while requests go on being stored slowly", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  expect(takeOn(1_000)).toBe(5 * 4)
})

it("Runs are not paced any more a few seconds after requests are stored quickly again", () => {
  const { takeOn, world } = paced()
  world.isSlow = true
  takeOn(2_000)
  world.isSlow = false
  takeOn(2_000)
  expect(takeOn(1_000)).toBe(100 * 50)
})
