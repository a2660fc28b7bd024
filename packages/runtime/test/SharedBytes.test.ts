import { expect, it } from "vitest"
import { SharedBytes } from "../src/SharedBytes.ts"

it("An owner of shared bytes can hold only as many bytes as remain free beside it", () => {
  const bytes = new SharedBytes(1_000)
  const [big, small] = [bytes.share(), bytes.share()]
  big.hold(500)
  expect(big.hasRoom(1)).toBe(false)
  expect(small.hasRoom(400)).toBe(true)
  small.hold(400)
  expect(small.hasRoom(1)).toBe(false)
  big.release(500)
  expect([big.isEmpty, small.isEmpty]).toEqual([true, false])
  expect(small.hasRoom(100)).toBe(true)
})
