import { describe, expect, it } from "vitest"
import { ExactNumber } from "@tidegate/json/ExactNumber"
import { visitJson } from "@tidegate/json/VisitJson"

const exact = new ExactNumber("12345678901234567891")

const visited = (root: unknown) => {
  const seen: Array<readonly [path: string, level: number, name: string | null, value: unknown]> = []
  const isDone = visitJson(root, (value, name, place) => {
    seen.push([place.path(), place.level, name, value])
    return true
  })
  return { seen, isDone }
}

describe("visitJson", () => {
  it("visits each value before its members, and the last member first, with its place", () => {
    const inner = { id: "a", none: null }
    const list = [true, inner]
    const root = { total: exact, list, empty: {}, "": [] }
    expect(visited(root)).toEqual({
      isDone: true,
      seen: [
        ["", 0, null, root],
        ["", 1, "", []],
        ["empty", 1, "empty", {}],
        ["list", 1, "list", list],
        ["list.1", 2, null, inner],
        ["list.1.none", 3, "none", null],
        ["list.1.id", 3, "id", "a"],
        ["list.0", 2, null, true],
        ["total", 1, "total", exact]
      ]
    })
  })

  it.each([["text"], [1], [null], [exact], [[]], [{}]])("visits %j once", (value) => {
    expect(visited(value)).toEqual({ isDone: true, seen: [["", 0, null, value]] })
  })

  it("visits own members only, whatever their names are", () => {
    const root: unknown = JSON.parse('{"__proto__":{"a":1},"constructor":2}')
    expect(visited(root).seen.map(([path]) => path)).toEqual(["", "constructor", "__proto__", "__proto__.a"])
  })

  it("ends as soon as a visit returns false", () => {
    const paths: Array<string> = []
    const root = { a: [1, 2, 3], b: Array.from({ length: 100_000 }, (_, i) => i) }
    const isDone = visitJson(root, (_, __, place) => {
      paths.push(place.path())
      return paths.length < 3
    })
    expect(isDone).toBe(false)
    expect(paths).toEqual(["", "b", "b.99999"])
    expect(visitJson(root, () => false)).toBe(false)
  })

  it("visits values that are nested deeper than the stack allows", () => {
    let deep: unknown = "end"
    for (let i = 0; i < 100_000; i++) deep = [deep]
    let levels = 0
    expect(visitJson(deep, (_, __, { level }) => (levels = level) >= 0)).toBe(true)
    expect(levels).toBe(100_000)
  })
})
