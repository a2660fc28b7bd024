import { expect, it } from "vitest"
import { QueueStart } from "../src/Workflow/QueueStart.ts"

it("The first read of a queue is from its beginning", () => {
  expect(new QueueStart().next(100_000)).toBe(0)
})

it("A read begins a second before the last run of the read before it", () => {
  const start = new QueueStart()
  start.next(100_000)
  start.read(90_000)
  expect(start.next(100_010)).toBe(89_000)
  start.read(95_000)
  expect(start.next(100_999)).toBe(94_000)
})

it("A queue is read from its beginning once a second, and whenever that is asked for", () => {
  const start = new QueueStart()
  start.next(100_000)
  start.read(90_000)
  expect(start.next(101_000)).toBe(0)
  start.read(90_000)
  expect(start.next(101_001)).toBe(89_000)
  start.reset()
  expect(start.next(101_002)).toBe(0)
})

it("A clock that was set back does not hide the beginning of a queue", () => {
  const start = new QueueStart()
  start.next(100_000)
  start.read(90_000)
  expect(start.next(99_000)).toBe(0)
})
