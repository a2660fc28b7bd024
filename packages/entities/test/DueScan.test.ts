import { expect, it } from "vitest"
import { DueScan } from "../src/Workflow/DueScan.ts"

const now = 1_000_000

it("The first read begins at the start of the queue, and the next one shortly before the first run that was found", () => {
  const scan = new DueScan()
  expect(scan.from(now)).toBe(0)
  expect(scan.read(0, now, now - 500)).toBeNull()
  expect(scan.from(now)).toBe(now - 2_500)
  expect(scan.read(now - 2_500, now + 100, null)).toBe(now + 1_000)
  expect(scan.from(now + 100)).toBe(now - 1_900)
})

it("A run that is found far back is where the next read begins, however late it was stored", () => {
  const scan = new DueScan()
  scan.read(0, now, now - 60_000)
  expect(scan.from(now + 999)).toBe(now - 62_000)
})

it("After a second a read begins at the start again, also when the clock was set back", () => {
  const scan = new DueScan()
  scan.read(0, now, null)
  expect(scan.from(now + 999)).toBeGreaterThan(0)
  expect(scan.from(now + 1_000)).toBe(0)
  expect(scan.from(now - 1_000)).toBe(0)
})

it("After a change the next read begins at the start, until a read has done so", () => {
  const scan = new DueScan()
  scan.read(0, now, null)
  scan.restart()
  expect(scan.from(now)).toBe(0)
  scan.read(0, now, null)
  expect(scan.from(now)).toBe(now - 2_000)
})
