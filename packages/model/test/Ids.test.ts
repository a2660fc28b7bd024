import { describe, expect, it } from "vitest"
import { idTime, isId, newId, prefixes } from "../src/Ids.ts"

const now = 1_900_000_000_000

describe("New ids", () => {
  it("Ids that are made one after the other with the same time sort in this order", () => {
    const made = Array.from({ length: 20_000 }, (_, i) => newId(prefixes.request, now + Math.floor(i / 10_000)))
    expect(made.toSorted()).toEqual(made)
    expect(new Set(made).size).toBe(made.length)
  })

  it("New ids have their prefix, their time and the shape of an id", () => {
    for (const ms of [0, 1, now, now, 2 ** 48]) {
      const id = newId(prefixes.event, ms)
      expect(isId(prefixes.event, id)).toBe(true)
      expect(idTime(id)).toBe(ms)
    }
  })

  it("The distance of two ids of the same time is not known to those who have one of them", () => {
    const heads = Array.from({ length: 2_000 }, () => newId(prefixes.source, now).slice(14, 22))
    const values = heads.map((head) => idTime(`x_${head.padStart(10, "0")}`)!)
    const distances = values.slice(1).map((value, i) => value - values[i]!)
    expect(distances.every((distance) => distance > 0)).toBe(true)
    expect(new Set(distances).size).toBeGreaterThan(1_900)
    // The random bits of a distance are used wholly.
    expect(Math.max(...distances)).toBeGreaterThan(2 ** 22)
    expect(Math.max(...distances)).toBeLessThanOrEqual(2 ** 23)
  })
})
