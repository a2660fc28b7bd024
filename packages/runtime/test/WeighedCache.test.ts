import { expect, it } from "vitest"
import { weighing } from "../src/HeldBytes.ts"
import { runToEnd } from "../src/Resumable.ts"
import { CacheRoom, WeighedCache } from "../src/WeighedCache.ts"

const entry = 300
const of = (owner: string, bytes = 1_000) => ({ owner, bytes: bytes - entry })

it("A full weighed cache removes its oldest entry that nobody has used", () => {
  const cache = new WeighedCache<string, number>(100, new CacheRoom(3_000))
  for (const key of ["a", "b", "c"]) cache.set(key, 1, of("team"))
  cache.get("a")
  cache.set("d", 1, of("team"))
  expect(["a", "b", "c", "d"].filter((key) => cache.get(key) !== undefined)).toEqual(["a", "c", "d"])
})

it("An owner that fills the shared cache memory pushes out only its own entries, in any cache", () => {
  const room = new CacheRoom(10_000)
  const [sources, plans] = [new WeighedCache<string, number>(100, room), new WeighedCache<string, number>(100, room)]
  sources.set("small", 1, of("quiet"))
  plans.set("small", 1, of("quiet"))
  for (let i = 0; i < 500; i++) (i % 2 === 0 ? sources : plans).set(`large ${i}`, i, of("loud", 3_000))
  expect([sources.get("small"), plans.get("small")]).toEqual([1, 1])
  expect(sources.get("large 498")).toBe(498)
  expect(room.bytes).toBeLessThanOrEqual(10_000)
})

it("An entry larger than the cache memory is not kept and pushes nothing out", () => {
  const room = new CacheRoom(2_000)
  const cache = new WeighedCache<string, number>(100, room)
  cache.set("a", 1, of("team"))
  expect(cache.set("b", 2, of("other", 2_001))).toBe(2)
  expect([cache.get("a"), cache.get("b"), cache.size, room.bytes]).toEqual([1, undefined, 1, 1_000])
})

it("A weighed cache respects its maximum of entries and forgets replaced and deleted ones", () => {
  const room = new CacheRoom(1_000_000)
  const cache = new WeighedCache<number, number>(3, room)
  for (let i = 0; i < 10; i++) cache.set(i, i, of(`team ${i}`))
  expect([cache.size, room.bytes]).toEqual([3, 3_000])
  cache.set(9, 10, of("other", 500))
  expect([cache.get(9), room.bytes]).toEqual([10, 2_500])
  for (const key of [7, 8, 9]) cache.delete(key)
  expect([cache.size, room.bytes]).toEqual([0, 0])
})

it("Cache memory that is made smaller removes at once what no longer fits", () => {
  const room = new CacheRoom(10_000)
  const cache = new WeighedCache<number, number>(100, room)
  for (let i = 0; i < 10; i++) cache.set(i, i, of("team"))
  room.resize(4_000)
  expect([cache.size, room.bytes]).toEqual([4, 4_000])
})

it("The weight of a value counts its texts, its placeholders and the programs of its patterns", () => {
  const weight = (value: unknown) => runToEnd(weighing(value))
  expect(weight("x".repeat(10_000))).toBeGreaterThan(10_000)
  expect(weight("ж".repeat(10_000))).toBeGreaterThan(20_000)
  expect(weight("{{body.a}}".repeat(1_000))).toBeGreaterThan(300_000)
  expect(weight({ body: { a: { $regex: "[a-z]{900}" } } })).toBeGreaterThan(50_000)
  expect(weight(Array.from({ length: 1_000 }, (_, i) => i))).toBeGreaterThan(100_000)
})
