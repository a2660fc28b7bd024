import type { Json } from "@tidegate/model/Rule"
import { PatternBounds } from "@tidegate/rules/PatternBounds"
import { compileConditions, compileFilter } from "@tidegate/rules/Filter"
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { processorTime } from "../../runtime/test/processorTime.ts"

const matches = (condition: unknown, document: Json): boolean =>
  Result.getOrThrow(compileConditions(condition))(document)

const refusal = (condition: unknown): { readonly message: string } => {
  const result = compileConditions(condition)
  return Result.isFailure(result) ? result.failure : expect.fail("accepted")
}

describe("Limits of conditions", () => {
  const nested = (levels: number): unknown =>
    Array.from({ length: levels }).reduce((inner: unknown) => ({ a: inner }), 1)
  const fields = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))

  it("A condition may be nested 10 levels deep, but not 11", () => {
    expect(Result.isSuccess(compileConditions(nested(10)))).toBe(true)
    expect(refusal(nested(11)).message).toMatch(/deeper than 10/)
  })
  it("All conditions of a filter together may have 200 nodes", () => {
    expect(Result.isSuccess(compileConditions(fields(199)))).toBe(true)
    expect(refusal(fields(200)).message).toMatch(/more than 200 nodes/)
    expect(Result.isFailure(compileFilter({ body: fields(150), query: fields(150) }))).toBe(true)
  })
  it("A long list under an operator counts as one node, up to 64 KiB", () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `id-${i}`)
    expect(matches({ id: { $in: ids(3_000) } }, { id: "id-2999" })).toBe(true)
    expect(refusal({ id: { $in: ids(10_000) } }).message).toMatch(/more than 65536 bytes/)
  })
  it("A condition may have 64 KiB of JSON in any script, and larger stored ones stay valid", () => {
    const bytesOf = (condition: unknown): number => Buffer.byteLength(JSON.stringify(condition))
    for (const letter of ["a", "ä", "語", "😀", '"', "\u0001"]) {
      const one = bytesOf(letter) - 2
      const of = (count: number) => ({ a: letter.repeat(count) })
      const most = Math.floor((65_536 - bytesOf(of(0)) - 1) / one)
      expect(Result.isSuccess(compileConditions(of(most))), letter).toBe(true)
      expect(refusal(of(most + 1)).message).toMatch(/more than 65536 bytes/)
      const stored = compileConditions(of(65_000), { patterns: PatternBounds.stored() })
      expect(Result.isSuccess(stored), letter).toBe(true)
    }
  })
  it("A pattern may have 512 characters and 1,000 repetitions, and a stored one 1,024 characters", () => {
    expect(Result.isSuccess(compileConditions({ $regex: "a".repeat(512) }))).toBe(true)
    expect(refusal({ $regex: "a".repeat(513) }).message).toMatch(/longer than 512/)
    expect(refusal({ $regex: "a{1000}".repeat(2) }).message).toMatch(/add up to more than 1000/)
    expect(refusal({ $regex: "((a{10}){10}){9}".repeat(3) }).message).toMatch(/too complex/)
    const stored = (length: number) =>
      compileConditions({ $regex: "a".repeat(length) }, { patterns: PatternBounds.stored() })
    expect([stored(1_024), stored(1_025)].map(Result.isSuccess)).toEqual([true, false])
  })
  it("Patterns that take too long to compile together are rejected", () => {
    const of = (pattern: string, count: number) =>
      compileConditions({ $or: Array.from({ length: count }, () => ({ a: { $regex: pattern } })) })
    // Each of these takes more than a hundred milliseconds to compile, and the engine has no bound of its own.
    for (const [pattern, count] of [
      [`(?i)[${"b-\u{10ffff}".repeat(120)}]`, 1],
      [`(?i)[${"b-\\x{10ffff}".repeat(42)}]`, 1],
      [`(?i)[${"b-\\x{0010ffff}".repeat(36)}]`, 1],
      [`\\Q[\\E(?:${"\\pL".repeat(160)}){900}`, 1],
      [`(${"[\\pL]".repeat(80)}){900}`, 1],
      [`(?i)${"[\\pL\\pN\\pS]".repeat(40)}`, 20],
      ["((a{10}){10}){9}", 60],
      ["x".repeat(512), 64]
    ] as const) {
      expect(refusal({ $or: Array.from({ length: count }, () => ({ a: { $regex: pattern } })) }).message).toMatch(
        /too long to compile/
      )
    }
    for (const pattern of [
      "(?i)[а-яё]{2,40}",
      "(?i)[\\x{80}-\\x{10ffff}]",
      "^[\\w.+-]+@[\\w-]+\\.[a-z]{2,}$",
      "a{1000}",
      "\\Qa(b[c\\E{900}d"
    ]) {
      expect(Result.isSuccess(of(pattern, 1)), pattern).toBe(true)
    }
    expect(Result.isSuccess(of("(?i)^order\\.(?:paid|captured)\\.[a-z0-9-]{1,36}$", 60))).toBe(true)
    // What was stored within the limits of its time goes on.
    const long = { $or: Array.from({ length: 64 }, () => ({ $regex: "x".repeat(512) })) }
    const kept = compileConditions(long, { patterns: PatternBounds.stored() })
    expect(Result.isSuccess(kept)).toBe(true)
  })
  it("A condition nested deeper than any stack is rejected", () => {
    expect(refusal(JSON.parse('{"a":'.repeat(100_000) + "1" + "}".repeat(100_000))).message).toMatch(/deeper than 10/)
    expect(refusal({ a: { $eq: JSON.parse("[".repeat(100_000) + "]".repeat(100_000)) } }).message).toMatch(/deeper/)
  })
})

describe("Hostile documents", () => {
  /** Each of these takes minutes, or the stack, where the engine lets it. */
  const quickly = (run: () => void): void => {
    const spent = processorTime()
    run()
    expect(spent()).toBeLessThan(2_000)
  }
  const parse = (text: string): Json => JSON.parse(text)

  it("A pattern that is exponential in a backtracking engine is matched quickly", () =>
    quickly(() => {
      expect(matches({ a: { $regex: "^(a+)+$" } }, { a: "a".repeat(60_000) + "!" })).toBe(false)
      expect(matches({ a: { $regex: "^(a+)+$" } }, { a: "a".repeat(60_000) })).toBe(true)
    }))
  it("A text longer than 64 Ki characters matches no pattern", () => {
    expect(matches({ a: { $regex: "a" } }, { a: "a".repeat(65_537) })).toBe(false)
  })
  it("A pattern whose number of states explodes ends quickly on many texts", () =>
    quickly(() => {
      const text = Array.from({ length: 8_192 }, (_, i) => "abcdefgh0123"[(i * i * 31 + i) % 12]).join("")
      const hostile = { a: Array.from({ length: 200 }, () => text) }
      expect(matches({ a: { $regex: "[a-h].{300}[qQ]" } }, hostile)).toBe(false)
      expect(matches({ $not: { a: { $regex: "[a-h].{300}[qQ]" } } }, hostile), "fails closed").toBe(false)
    }))
  it("A search for a long text in a long text ends quickly", () =>
    quickly(() => {
      const part = "a".repeat(30_000) + "b" + "a".repeat(30_000)
      expect(matches({ text: { $contains: part } }, { text: "a".repeat(4_000_000) })).toBe(false)
      expect(matches({ text: { $contains: part } }, { text: `x${part}` })).toBe(true)
    }))
  it("The comparison of two long lists ends quickly and fails closed", () =>
    quickly(() => {
      const hostile = {
        a: Array.from({ length: 100_000 }, (_, i) => i),
        b: Array.from({ length: 100_000 }, (_, i) => -1 - i)
      }
      expect(matches({ a: { $in: { $ref: "b" } } }, hostile)).toBe(false)
      expect(matches({ a: { $nin: { $ref: "b" } } }, hostile), "fails closed").toBe(false)
      const filter = Result.getOrThrow(compileFilter({ body: { a: { $nin: { $ref: "b" } } }, path: "/" }))
      const request = { headers: {}, query: {}, path: "/", body: () => hostile }
      expect(filter.failingTargets(request), "and so does what comes after").toStrictEqual(["body", "path"])
      expect(filter.failingTargets({ ...request, body: () => ({ a: 1, b: [2] }) }), "till the next").toStrictEqual([])
    }))
  it("Many conditions on a huge array end quickly", () =>
    quickly(() => {
      const condition = { a: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`k${i}`, { $exist: false }])) }
      expect(matches({ $not: condition }, { a: Array.from({ length: 500_000 }, () => ({ k89: 1 })) })).toBe(false)
    }))
  it("Costly number texts, long comparisons and long paths count for the work limit", () => {
    const many = (element: Json, count: number): Json => Array.from({ length: count }, () => element)
    const long = "9".repeat(64)
    const path = `b${".b".repeat(126)}`
    const deep = parse('{"b":'.repeat(127) + "1" + "}".repeat(127))
    // Were they not counted, each of these would be right, and take a hundred milliseconds and more.
    for (const [condition, document] of [
      [{ a: { $neq: 5 } }, { a: many(long, 400_000) }],
      [{ a: { $not: { $gt: 1e300 } } }, { a: many(long, 400_000) }],
      [{ a: { $nin: [1, 2, 3] } }, { a: many(long, 400_000) }],
      [{ a: { $not: { $gt: 1e300 } } }, { a: many("9e9", 600_000) }],
      [{ a: { $not: { $regex: "x" } } }, { a: many("", 300_000) }],
      [{ a: { $nin: { $ref: "b" } } }, { a: many(1, 1_000), b: many(long, 900) }],
      [{ a: { $neq: { $ref: path } } }, { a: many(2, 20_000), b: (deep as { b: Json }).b }],
      [
        { a: { $not: { $startsWith: Array.from({ length: 640 }, (_, i) => `${"a".repeat(90)}${i}`) } } },
        { a: many("a".repeat(99), 1_400) }
      ]
    ] as ReadonlyArray<readonly [unknown, Json]>) {
      expect(matches(condition, document), `fails closed: ${JSON.stringify(condition).slice(0, 60)}`).toBe(false)
    }
    expect(matches({ a: { $neq: 5 } }, { a: many("9", 400_000) }), "as real ones").toBe(true)
  })
  it("Conditions on arrays nested deeper than any stack end quickly", () =>
    quickly(() => {
      const deep = parse("[".repeat(200_000) + "1" + "]".repeat(200_000))
      for (const condition of [1, { a: 1 }, { $gt: 0 }, { $not: 1 }, [1], { "a.b": 1 }]) {
        expect(matches({ x: condition }, { x: deep }), JSON.stringify(condition)).toBe(false)
      }
      expect(matches({ x: { $eq: { $ref: "y" } } }, { x: deep, y: deep }), "fails closed").toBe(false)
      expect(matches({ x: { $neq: { $ref: "y" } } }, { x: deep, y: deep }), "fails closed").toBe(false)
    }))
  it("Keys never lead to a prototype", () => {
    const polluted = parse('{"__proto__":{"admin":true}}')
    expect(matches({ admin: true }, polluted)).toBe(false)
    expect(matches(parse('{"__proto__":{"admin":true}}'), polluted)).toBe(true)
    expect(matches(parse('{"__proto__":{"admin":true}}'), {})).toBe(false)
    expect(matches({ constructor: { $exist: true } }, {})).toBe(false)
    expect(matches({ "constructor.name": "Object" }, {})).toBe(false)
    expect(matches({ "__proto__.toString": { $exist: true } }, {})).toBe(false)
    expect(matches({ "a.length": 2 }, { a: [1, 2] })).toBe(false)
    expect(matches({ a: { $ref: "constructor.name" } }, { a: "Object" })).toBe(false)
    expect(matches({ a: { $ref: "__proto__" } }, { a: {} })).toBe(false)
    expect(matches({ a: { $eq: { y: {} } } }, parse('{"a":{"__proto__":{}}}'))).toBe(false)
    expect(matches({ a: { $ref: "b.length" } }, { a: 2, b: [1, 2] })).toBe(false)
    expect(matches({ a: { toString: { $exist: true } } }, { a: { x: 1 } })).toBe(false)
    expect(matches({ a: { hasOwnProperty: 1 } }, { a: { hasOwnProperty: 1 } })).toBe(true)
  })
})
