import type { Json } from "@tidegate/model/Rule"
import { compileConditions, compileFilter } from "@tidegate/rules/Filter"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"

const matches = (condition: unknown, document: Json): boolean =>
  Result.getOrThrow(compileConditions(condition))(document)

const refusal = (condition: unknown): { readonly message: string } => {
  const result = compileConditions(condition)
  return Result.isFailure(result) ? result.failure : assert.fail("accepted")
}

describe("limits", () => {
  const nested = (levels: number): unknown =>
    Array.from({ length: levels }).reduce((inner: unknown) => ({ a: inner }), 1)
  const fields = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))

  it("10 levels, and not 11", () => {
    assert.isTrue(Result.isSuccess(compileConditions(nested(10))))
    assert.match(refusal(nested(11)).message, /deeper than 10/)
  })
  it("200 nodes, over all targets together", () => {
    assert.isTrue(Result.isSuccess(compileConditions(fields(199))))
    assert.match(refusal(fields(200)).message, /more than 200 nodes/)
    assert.isTrue(Result.isFailure(compileFilter({ body: fields(150), query: fields(150) })))
  })
  it("a long list under an operator is one node, up to 64 Ki characters", () => {
    const ids = (count: number) => Array.from({ length: count }, (_, i) => `id-${i}`)
    assert.isTrue(matches({ id: { $in: ids(3_000) } }, { id: "id-2999" }))
    assert.match(refusal({ id: { $in: ids(10_000) } }).message, /more than 65536 characters/)
  })
  it("patterns of 512 characters and 1,000 repetitions, or what the caller sets", () => {
    assert.isTrue(Result.isSuccess(compileConditions({ $regex: "a".repeat(512) })))
    assert.match(refusal({ $regex: "a".repeat(513) }).message, /longer than 512/)
    assert.match(refusal({ $regex: "a{1000}".repeat(2) }).message, /add up to more than 1000/)
    assert.match(refusal({ $regex: "((a{10}){10}){9}".repeat(15) }).message, /too complex/)
    assert.isTrue(Result.isFailure(compileConditions({ $regex: "a".repeat(101) }, { maxPatternLength: 100 })))
  })
  it("a condition nested beyond any stack is refused, not followed", () => {
    assert.match(refusal(JSON.parse('{"a":'.repeat(100_000) + "1" + "}".repeat(100_000))).message, /deeper than 10/)
    assert.match(refusal({ a: { $eq: JSON.parse("[".repeat(100_000) + "]".repeat(100_000)) } }).message, /deeper/)
  })
})

describe("hostile documents", () => {
  /** Each of these takes minutes, or the stack, where the engine lets it. */
  const quickly = (run: () => void): void => {
    // Of processor time, because others use the machine.
    const before = process.cpuUsage()
    run()
    const { system, user } = process.cpuUsage(before)
    assert.isBelow((system + user) / 1_000, 2_000)
  }
  const parse = (text: string): Json => JSON.parse(text)

  it("a pattern that makes a backtracking engine exponential", () =>
    quickly(() => {
      assert.isFalse(matches({ a: { $regex: "^(a+)+$" } }, { a: "a".repeat(60_000) + "!" }))
      assert.isTrue(matches({ a: { $regex: "^(a+)+$" } }, { a: "a".repeat(60_000) }))
    }))
  it("a text beyond 64 Ki characters matches no pattern", () => {
    assert.isFalse(matches({ a: { $regex: "a" } }, { a: "a".repeat(65_537) }))
  })
  it("a pattern whose states explode, on many texts", () =>
    quickly(() => {
      const text = Array.from({ length: 8_192 }, (_, i) => "abcdefgh0123"[(i * i * 31 + i) % 12]).join("")
      const hostile = { a: Array.from({ length: 200 }, () => text) }
      assert.isFalse(matches({ a: { $regex: "[a-h].{300}[qQ]" } }, hostile))
      assert.isFalse(matches({ $not: { a: { $regex: "[a-h].{300}[qQ]" } } }, hostile), "fails closed")
    }))
  it("a search whose cost is the product of two texts", () =>
    quickly(() => {
      const part = "a".repeat(30_000) + "b" + "a".repeat(30_000)
      assert.isFalse(matches({ text: { $contains: part } }, { text: "a".repeat(4_000_000) }))
      assert.isTrue(matches({ text: { $contains: part } }, { text: `x${part}` }))
    }))
  it("two long lists compared with each other", () =>
    quickly(() => {
      const hostile = {
        a: Array.from({ length: 100_000 }, (_, i) => i),
        b: Array.from({ length: 100_000 }, (_, i) => -1 - i)
      }
      assert.isFalse(matches({ a: { $in: { $ref: "b" } } }, hostile))
      assert.isFalse(matches({ a: { $nin: { $ref: "b" } } }, hostile), "fails closed")
      const filter = Result.getOrThrow(compileFilter({ body: { a: { $nin: { $ref: "b" } } }, path: "/" }))
      const request = { headers: {}, query: {}, path: "/", body: () => hostile }
      assert.deepStrictEqual(filter.failingTargets(request), ["body", "path"], "and so does what comes after")
      assert.deepStrictEqual(filter.failingTargets({ ...request, body: () => ({ a: 1, b: [2] }) }), [], "till the next")
    }))
  it("many conditions on a huge array", () =>
    quickly(() => {
      const condition = { a: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`k${i}`, { $exist: false }])) }
      assert.isFalse(matches({ $not: condition }, { a: Array.from({ length: 500_000 }, () => ({ k89: 1 })) }))
    }))
  it("arrays nested beyond any stack", () =>
    quickly(() => {
      const deep = parse("[".repeat(200_000) + "1" + "]".repeat(200_000))
      for (const condition of [1, { a: 1 }, { $gt: 0 }, { $not: 1 }, [1], { "a.b": 1 }]) {
        assert.isFalse(matches({ x: condition }, { x: deep }), JSON.stringify(condition))
      }
      assert.isFalse(matches({ x: { $eq: { $ref: "y" } } }, { x: deep, y: deep }), "fails closed")
      assert.isFalse(matches({ x: { $neq: { $ref: "y" } } }, { x: deep, y: deep }), "fails closed")
    }))
  it("keys that lead to a prototype", () => {
    const polluted = parse('{"__proto__":{"admin":true}}')
    assert.isFalse(matches({ admin: true }, polluted))
    assert.isTrue(matches(parse('{"__proto__":{"admin":true}}'), polluted))
    assert.isFalse(matches(parse('{"__proto__":{"admin":true}}'), {}))
    assert.isFalse(matches({ constructor: { $exist: true } }, {}))
    assert.isFalse(matches({ "constructor.name": "Object" }, {}))
    assert.isFalse(matches({ "__proto__.toString": { $exist: true } }, {}))
    assert.isFalse(matches({ "a.length": 2 }, { a: [1, 2] }))
    assert.isFalse(matches({ a: { $ref: "constructor.name" } }, { a: "Object" }))
    assert.isFalse(matches({ a: { $ref: "__proto__" } }, { a: {} }))
    assert.isFalse(matches({ a: { $eq: { y: {} } } }, parse('{"a":{"__proto__":{}}}')))
    assert.isFalse(matches({ a: { $ref: "b.length" } }, { a: 2, b: [1, 2] }))
    assert.isFalse(matches({ a: { toString: { $exist: true } } }, { a: { x: 1 } }))
    assert.isTrue(matches({ a: { hasOwnProperty: 1 } }, { a: { hasOwnProperty: 1 } }))
  })
})
