import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import type { FilterConditions, Json } from "@tidegate/model/Rule"
import { explain, type Explained, maxExplained, shownCharacters } from "../src/Explanation.ts"
import { compileFilter, type FilterInput } from "../src/Filter.ts"
import { Generator } from "./Generator.ts"

const tape = Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5_039 }))), {
  minLength: 40,
  maxLength: 150
})

const input = (given: Partial<Omit<FilterInput, "body">> & { readonly body?: Json } = {}): FilterInput => {
  const { body = null, ...rest } = given
  return { headers: {}, query: {}, path: "/", ...rest, body: () => body }
}

const explained = (
  conditions: FilterConditions,
  request: FilterInput,
  shown: (path: string, value: Json) => Json = (_, value) => value
) => {
  const work = explain(conditions, request, shown)
  for (;;) {
    const part = work.next()
    if (part.done === true) return Result.getOrThrow(part.value)
  }
}

const row = ({ actual, expected, matched, operator, path, target }: Explained) => [
  `${target}:${path}`,
  operator,
  expected,
  actual,
  matched
]
const rows = (conditions: FilterConditions, request: FilterInput) => explained(conditions, request).explanation.map(row)

describe("Explanation of a filter", () => {
  it("An explanation reports for each operator what was expected and what was found", () => {
    const request = input({ body: { total: "120.00", type: "order.paid" }, headers: { "x-env": "test" }, path: "/o" })
    const conditions = {
      headers: { "X-Env": "prod" },
      body: { total: { $gte: 100, $lt: 500 }, type: { $in: ["order.paid"] } },
      path: { $startsWith: "/o" }
    }
    expect(explained(conditions, request)).toStrictEqual({
      matched: false,
      targets: { headers: false, body: true, query: null, path: true },
      explanation: [
        { target: "headers", path: "X-Env", operator: "$eq", expected: "prod", actual: "test", matched: false },
        { target: "body", path: "total", operator: "$gte", expected: 100, actual: "120.00", matched: true },
        { target: "body", path: "total", operator: "$lt", expected: 500, actual: "120.00", matched: true },
        {
          target: "body",
          path: "type",
          operator: "$in",
          expected: ["order.paid"],
          actual: "order.paid",
          matched: true
        },
        { target: "path", path: "", operator: "$startsWith", expected: "/o", actual: "/o", matched: true }
      ]
    })
  })

  it("An explanation includes alternatives, negations and missing values", () => {
    const body = { a: 1, list: [{ n: 1 }, { n: 2 }] }
    expect(rows({ body: { $or: [{ a: 2 }, { b: { $exist: false } }] } }, input({ body }))).toStrictEqual([
      ["body:", "$or", [{ a: 2 }, { b: { $exist: false } }], body, true],
      ["body:a", "$eq", 2, 1, false],
      ["body:b", "$exist", false, null, true]
    ])
    expect(rows({ body: { a: { $not: { $gt: 1 } }, "list.n": 2 } }, input({ body }))).toStrictEqual([
      ["body:a", "$not", { $gt: 1 }, 1, true],
      ['body:["list.n"]', "$eq", 2, [1, 2], true]
    ])
  })

  it("An explanation reports that no single array element meets all conditions", () => {
    const body = { items: [{ sku: "a" }, { n: 1 }] }
    expect(rows({ body: { items: { sku: "a", n: 1 } } }, input({ body }))).toStrictEqual([
      ["body:items.sku", "$eq", "a", ["a"], true],
      ["body:items.n", "$eq", 1, [1], true],
      ["body:items", null, { sku: "a", n: 1 }, body.items, false]
    ])
  })

  it("An explanation reads an operator without its $ as the engine does", () => {
    expect(rows({ body: { a: { gt: 1 } } }, input({ body: { a: 2 } }))).toStrictEqual([["body:a", "$gt", 1, 2, true]])
    expect(rows({ body: { a: { gt: 1 } } }, input({ body: { a: { gt: 1 } } }))).toStrictEqual([
      ["body:a.gt", "$eq", 1, 1, true]
    ])
    expect(rows({ query: { in: "x" } }, input({ query: { in: "x" } }))).toStrictEqual([
      ["query:in", "$eq", "x", "x", true]
    ])
  })

  it("An explanation shows at most 50 operators and 200 characters of a value, through the given mask", () => {
    const names = Array.from({ length: 120 }, (_, i) => `k${i}`)
    const many = Object.fromEntries(names.map((name) => [name, 1]))
    expect(explained({ body: many }, input({ body: many })).explanation).toHaveLength(maxExplained)
    const large = { text: "x".repeat(5_000_000), list: Array.from({ length: 90_000 }, (_, i) => i) }
    const [text, list] = explained({ body: { text: "y", list: [-1] } }, input({ body: large })).explanation
    expect(text?.actual).toBe(`${"x".repeat(shownCharacters)}…`)
    expect(list?.actual).toMatch(/^\[0,1,2,.*…$/)
    expect(list?.actual).toHaveLength(shownCharacters + 1)
    const seen: Array<string> = []
    const { explanation } = explained(
      { headers: { authorization: "Bearer x" } },
      input({ headers: { authorization: "Bearer y" } }),
      (path) => {
        seen.push(path)
        return "hidden"
      }
    )
    expect([seen, explanation[0]?.actual]).toStrictEqual([["headers.authorization"], "hidden"])
  })

  it("An explanation stops at the work limit and reports nothing that it does not know", () => {
    const values = Array.from({ length: 90_000 }, (_, i) => ({ n: i }))
    const conditions = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}.n`, -1]))
    const body = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, values]))
    const { explanation, matched } = explained({ body: { $or: [conditions] } }, input({ body }))
    expect(matched).toBe(false)
    expect(explanation.length).toBeLessThan(40)
  })

  it.prop(
    "An explanation agrees with the engine and names a failing condition of every mismatch",
    { numbers: tape },
    ({ numbers }) => {
      const generate = new Generator(numbers)
      const body = generate.document(3) as Json
      const condition = generate.condition(body, 3) as Json
      const request = input({ body })
      const { explanation, matched } = explained({ body: condition }, request)
      const engine = Result.getOrThrow(compileFilter({ body: condition }))
      expect(matched, JSON.stringify({ body, condition })).toBe(engine.failingTargets(request).length === 0)
      if (matched || explanation.length === maxExplained) return
      expect(
        explanation.map((one) => one.matched),
        JSON.stringify({ body, condition })
      ).toContain(false)
    },
    { arbitrary: { runs: 2_000, size: 150 } }
  )
})
