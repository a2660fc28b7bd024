import { describe, expect, it } from "vitest"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"

/** Sizes of pieces, from a seed. */
const sizes = (seed: number): ReadonlyArray<number> => {
  let state = seed
  const next = (below: number): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 1) % below
  return Array.from({ length: next(60) }, () => (next(3) === 0 ? next(5_000) : next(4)))
}

describe("Gathered bytes", () => {
  it("Gathered bytes are returned unchanged up to the limit, and use at most twice their size in memory", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const limit = (seed * 97) % 20_000
      const gathered = new GatheredBytes(limit)
      const pieces = sizes(seed).map((size, index) => Buffer.alloc(size, index + 1))
      let sent = 0
      for (const piece of pieces) {
        sent += piece.length
        const fits = gathered.add(piece)
        expect(fits || sent > limit, `seed ${seed}`).toBe(true)
        expect(gathered.length).toBe(Math.min(sent, limit))
        expect(gathered.held).toBeLessThanOrEqual(Math.min(limit, 2 * Math.max(gathered.length, 1)))
      }
      const taken = gathered.take()
      expect(taken.equals(Buffer.concat(pieces).subarray(0, limit)), `seed ${seed}`).toBe(true)
      expect(gathered.held).toBe(taken.length)
    }
  })

  it("A million pieces of one byte are kept in one buffer", () => {
    const gathered = new GatheredBytes(2_000_000)
    const piece = Buffer.from("x")
    for (let i = 0; i < 1_000_000; i++) gathered.add(piece)
    expect(gathered.held).toBeLessThanOrEqual(2_000_000)
    expect(gathered.take().equals(Buffer.alloc(1_000_000, "x"))).toBe(true)
  })

  it("A single piece is kept without a copy", () => {
    const piece = Buffer.from("all of it")
    const gathered = new GatheredBytes(100)
    gathered.add(piece)
    expect(gathered.take()).toBe(piece)
  })
})
