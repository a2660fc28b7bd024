import { compileCustomResponse } from "@tidegate/rules/CustomResponse"
import { allOf, compileConditions, compileFilter, type FilterInput } from "@tidegate/rules/Filter"
import { compileRules, normalizeRules } from "@tidegate/rules/RuleSet"
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { methodVectors, refused, requestOf, requestVectors, vectors } from "./Vectors.ts"

/** A connection's filter rule, written as the API takes it: the targets that do not match. */
const connectionFilter = (conditions: object, input: FilterInput): ReadonlyArray<unknown> | undefined => {
  const rules = Result.getOrThrow(normalizeRules([{ type: "filter", ...conditions }]))
  return Result.getOrThrow(compileRules(rules)).filter?.failingTargets(input)
}

/** A custom response with one rule: whether its matcher lets the request pass. */
const responseMatcher = (match: object, input: FilterInput): boolean => {
  const compiled = Result.getOrThrow(compileCustomResponse({ rules: [{ match, response: { status: 202 } }] }))
  return compiled.respond({ method: "POST", ...input, requestId: "req_1" })?.status === 202
}

const shown = (value: unknown): string => JSON.stringify(value)

for (const [title, table] of Object.entries(vectors)) {
  describe(title, () => {
    for (const [condition, document, expected] of table) {
      it(`The filter ${shown(condition)} on ${shown(document)} gives ${expected}`, () => {
        const input = requestOf({ body: () => document })
        expect(Result.getOrThrow(compileConditions(condition))(document)).toBe(expected)
        expect(connectionFilter({ body: condition }, input)).toStrictEqual(expected ? [] : ["body"])
        expect(responseMatcher({ body: condition }, input)).toBe(expected)
      })
    }
  })
}

describe("Decision 7: headers, query and path", () => {
  for (const [title, table] of Object.entries(requestVectors)) {
    it(title, () => {
      for (const [match, failing, changed] of table) {
        const input = requestOf(changed)
        expect(connectionFilter(match, input), shown(match)).toStrictEqual(failing)
        expect(responseMatcher(match, input), shown(match)).toBe(failing.length === 0)
      }
    })
  }

  it("A matcher accepts a method, a list of methods, or operators", () => {
    for (const [match, failing] of methodVectors) {
      const input = requestOf()
      expect(Result.getOrThrow(compileFilter(match)).failingTargets(input), shown(match)).toStrictEqual(failing)
      expect(responseMatcher(match, input), shown(match)).toBe(failing.length === 0)
    }
  })

  it("Each failing target is named once, whatever the number of filters", () => {
    const filter = (conditions: object) => Result.getOrThrow(compileFilter(conditions))
    const both = allOf([
      filter({ body: { type: "x" }, path: "/" }),
      filter({ body: { type: "y" }, headers: { "x-env": "prod" } })
    ])
    expect(both.failingTargets(requestOf())).toStrictEqual(["body", "path"])
    expect(filter({}).failingTargets(requestOf())).toStrictEqual([])
  })
  it("A filter reads the body only if it has a condition on it, and only once", () => {
    let reads = 0
    const input = requestOf({
      body: () => {
        reads++
        return null
      }
    })
    expect(connectionFilter({ headers: { "x-env": "prod" }, path: { $exist: true } }, input)).toStrictEqual([])
    expect(reads).toBe(0)
    const twice = Result.getOrThrow(compileFilter({ body: null }))
    expect(allOf([twice, twice]).failingTargets(input)).toStrictEqual([])
    expect(reads).toBe(1)
  })
})

describe("Decision 8: rejection of invalid conditions", () => {
  const failureOf = <E>(result: Result.Result<unknown, E>): E =>
    Result.isFailure(result) ? result.failure : expect.fail("accepted")

  for (const [condition, path, message] of refused) {
    it(`The condition ${shown(condition)} is rejected at '${path}'`, () => {
      const failure = failureOf(compileConditions(condition))
      expect(failure.path).toBe(path)
      expect(failure.message).toMatch(message)
      const inBody = path.startsWith("[") ? `body${path}` : `body.${path}`
      const ofRule = failureOf(normalizeRules([{ type: "filter", body: condition }]))
      expect([ofRule.path, ofRule.message]).toStrictEqual([inBody, failure.message])
      const ofMatcher = failureOf(compileCustomResponse({ rules: [{}, { match: { body: condition } }] }))
      expect(ofMatcher).toStrictEqual({ path: `rules[1].match.${inBody}`, message: failure.message })
    })
  }

  it("A value that is not JSON is rejected in a condition", () => {
    for (const value of [undefined, Number.NaN]) {
      const { message, path } = failureOf(compileConditions({ a: value }))
      expect([path, message]).toStrictEqual(["a", "is not a JSON value"])
      failureOf(compileCustomResponse({ rules: [{ match: { body: { a: value } } }] }))
    }
  })

  it("The target of a filter is rejected if it has the wrong type", () => {
    const pathOf = (conditions: object) => {
      const result = compileFilter(conditions)
      return Result.isFailure(result) ? result.failure.path : expect.fail()
    }
    expect(pathOf({ headers: "x" })).toBe("headers")
    expect(pathOf({ query: ["x"] })).toBe("query")
    expect(pathOf({ path: 1 })).toBe("path")
    expect(pathOf({ path: { sub: 1 } })).toBe("path.sub")
    expect(pathOf({ path: ["/a"] })).toBe("path")
    expect(pathOf({ body: { total: { $gt: [] } } })).toBe("body.total.$gt")
  })
})
