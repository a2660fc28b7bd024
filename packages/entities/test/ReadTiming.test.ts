import { expect, it } from "vitest"
import { ReadTiming } from "../src/Workflow/ReadTiming.ts"

it("The first read begins at once, however few places are free", () => {
  expect(new ReadTiming(50).waitMs(1, 1_000)).toBe(0)
})

it("A read with places for all of its runs begins at once, also right after the one before", () => {
  const timing = new ReadTiming(50)
  timing.reads(1_000)
  expect(timing.waitMs(50, 1_000)).toBe(0)
})

it("A read with too few places waits until 50 ms after the one before", () => {
  const timing = new ReadTiming(50)
  timing.reads(1_000)
  expect(timing.waitMs(49, 1_000)).toBe(50)
  expect(timing.waitMs(49, 1_030)).toBe(20)
  expect(timing.waitMs(1, 1_050)).toBe(0)
})

it("A clock that was set back does not delay a read", () => {
  const timing = new ReadTiming(50)
  timing.reads(1_000)
  expect(timing.waitMs(1, 500)).toBe(0)
})
