import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Result, Schema } from "effect"
import { readNumber } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { runToEnd } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import { compilingDeduplication } from "@tidegate/rules/Deduplication"
import { explain } from "@tidegate/rules/Explanation"
import { compileFilter } from "@tidegate/rules/Filter"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { conditionsHash } from "@tidegate/rules/StoredFilter"

const json = (text: string): Json => {
  const parsed = parseJson(text)
  if (parsed.kind !== "json") throw new Error(parsed.kind)
  return parsed.value as Json
}
const request = (body: string) => ({ method: "POST", path: "/", headers: {}, query: {}, body: () => json(body) })

const matches = (condition: string, body: string): boolean => {
  const conditions = { body: json(condition) }
  const filter = Result.getOrThrow(compileFilter(conditions))
  const matched = filter.failingTargets(request(body)).length === 0
  // The explanation is of the same numbers.
  const explained = runToEnd(explain(conditions, request(body), (_, value) => value))
  expect(Result.getOrThrow(explained).matched).toBe(matched)
  return matched
}

const [before, id, behind] = ["12345678901234567781", "12345678901234567782", "12345678901234567783"]

describe("Condition on a number that JavaScript would round", () => {
  it.each<readonly [condition: string, body: string, matched: boolean]>([
    [`{"id":${id}}`, `{"id":${id}}`, true],
    [`{"id":${id}}`, `{"id":${behind}}`, false],
    [`{"id":{"$eq":${id}}}`, `{"id":${id}.000}`, true],
    [`{"id":{"$neq":${id}}}`, `{"id":${behind}}`, true],
    [`{"id":"${id}"}`, `{"id":${id}}`, true],
    [`{"id":"${id}"}`, `{"id":${behind}}`, false],
    [`{"id":${id}}`, `{"id":"${id}"}`, true],
    [`{"id":${id}}`, `{"id":"${behind}"}`, false],
    [`{"id":12345678901234567000}`, `{"id":"${id}"}`, false],
    [`{"id":{"$gt":${id}}}`, `{"id":${behind}}`, true],
    [`{"id":{"$gt":${id}}}`, `{"id":${id}}`, false],
    [`{"id":{"$gte":${id}}}`, `{"id":${id}}`, true],
    [`{"id":{"$lt":${id}}}`, `{"id":"${before}"}`, true],
    [`{"id":{"$lte":"${before}"}}`, `{"id":${id}}`, false],
    [`{"id":{"$in":[1,${id}]}}`, `{"id":${id}}`, true],
    [`{"id":{"$in":[1,${id}]}}`, `{"id":"${id}"}`, true],
    [`{"id":{"$in":["x","${id}"]}}`, `{"id":${id}}`, true],
    [`{"id":{"$in":[1,${id},"${before}"]}}`, `{"id":${behind}}`, false],
    [`{"id":{"$nin":[${id}]}}`, `{"id":${behind}}`, true],
    [`{"ids":${id}}`, `{"ids":[1,${id}]}`, true],
    [`{"ids":[${id}]}`, `{"ids":[${behind}]}`, false],
    [`{"ids":{"$contains":${id}}}`, `{"ids":[${behind},${id}]}`, true],
    [`{"text":{"$contains":${id}}}`, `{"text":"order ${id}"}`, true],
    [`{"a":{"$eq":{"id":${id}}}}`, `{"a":{"id":${id}}}`, true],
    [`{"a":{"$eq":{"id":${id}}}}`, `{"a":{"id":${behind}}}`, false],
    [`{"a":{"$ref":"b"}}`, `{"a":${id},"b":${id}}`, true],
    [`{"a":{"$ref":"b"}}`, `{"a":${id},"b":${behind}}`, false],
    [`{"a":{"$gt":{"$ref":"b"}}}`, `{"a":${behind},"b":"${id}"}`, true],
    [`{"a":{"$in":{"$ref":"b"}}}`, `{"a":${id},"b":[${behind}]}`, false],
    [`{"rate":0.1}`, `{"rate":0.1000000000000000055}`, false],
    [`{"rate":{"$gt":0.1}}`, `{"rate":0.1000000000000000055}`, true],
    [`{"big":{"$gt":1e308}}`, `{"big":1e400}`, true],
    [`{"big":{"$lt":1e9999}}`, `{"big":1e9998}`, true],
    [`{"big":10e399}`, `{"big":1e400}`, true],
    [`{"one":1}`, `{"one":1.0}`, true],
    [`{"hundred":100}`, `{"hundred":1e2}`, true],
    [`{"zero":0}`, `{"zero":-0}`, true],
    // It is a number, and no object without members.
    [id, `{"id":1}`, false],
    [`{"id":{"x":{"$exist":false}}}`, `{"id":${id}}`, false],
    [`{"id":{"$exist":true}}`, `{"id":${id}}`, true],
    [`{"gt":${id}}`, `{"gt":${id}}`, true]
  ])("The condition %s on %s gives %s", (condition, body, matched) => expect(matches(condition, body)).toBe(matched))

  it("An explanation shows all digits of the numbers", () => {
    const explained = runToEnd(
      explain({ body: json(`{"id":${id}}`) }, request(`{"id":${behind}}`), (_, value) => value)
    )
    expect(JSON.stringify(Result.getOrThrow(explained).explanation)).toContain(`"expected":${id},"actual":${behind}`)
  })

  it("A long number is rejected where an operator takes none, and its digits count for the size", () => {
    expect(Result.isFailure(compileFilter({ body: json(`{"id":{"$regex":${id}}}`) }))).toBe(true)
    expect(Result.isFailure(compileFilter({ headers: json(id) }))).toBe(true)
    const long = `[${Array.from({ length: 80 }, () => "7".repeat(1_000)).join()}]`
    expect(Result.isFailure(compileFilter({ body: json(`{"id":{"$in":${long}}}`) }))).toBe(true)
  })

  it("A condition has the same hash however its number is written", () => {
    const hashes = [`{"id":${id}}`, `{"id":${id}.0}`, `{"id":1234567890123456778.2e1}`].map((text) =>
      conditionsHash({ body: json(text) })
    )
    expect(new Set(hashes).size).toBe(1)
    expect(conditionsHash({ body: json(`{"id":${behind}}`) })).not.toBe(hashes[0])
  })

  it("Long numbers count for the work limit of an evaluation", () => {
    const filter = Result.getOrThrow(compileFilter({ body: json(`{"ids":{"$in":[${"8".repeat(1_000)}]}}`) }))
    const body = json(`{"ids":[${Array.from({ length: 9_000 }, () => "7".repeat(1_000)).join()}]}`)
    // More than an evaluation may cost: it does not match, and ends.
    const failing = filter.failingTargets({ method: "POST", path: "/", headers: {}, query: {}, body: () => body })
    expect(failing).toEqual(["body"])
  })
})

const keyOf = (rule: object, body: string): string | null =>
  runToEnd(compilingDeduplication({ type: "deduplicate", window: 60_000, ...rule })).key(request(body))

describe("Deduplication key of long numbers", () => {
  it.each([
    ["of one field", { include_fields: ["body.id"] }],
    ["of the whole request", {}],
    ["of all but one field", { exclude_fields: ["body.at"] }]
  ])("A deduplication key %s distinguishes ids that JavaScript would round to one", (_name, rule) => {
    const keys = [before, id, behind].map((one) => keyOf(rule, `{"id":${one},"at":1}`))
    expect(new Set(keys).size).toBe(3)
    expect(keyOf(rule, `{"at":1.0,"id":${id}.0}`)).toBe(keys[1])
  })

  const whole = Arbitrary.map(
    Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))), {
      minLength: 1,
      maxLength: 30
    }),
    (digits) => String(BigInt(digits.join("")))
  )
  it.prop("Deduplication keys of numbers are equal if and only if the numbers are equal", [whole, whole], ([a, b]) => {
    const rule = { include_fields: ["body.id"] }
    expect(keyOf(rule, `{"id":${a}}`) === keyOf(rule, `{"id":${b}}`)).toBe(a === b)
    expect(keyOf(rule, `{"id":${a}.0}`)).toBe(keyOf(rule, `{"id":${a}e0}`))
    expect(matches(`{"id":${a}}`, `{"id":${b}}`)).toBe(a === b)
    expect(matches(`{"id":{"$gt":${a}}}`, `{"id":"${b}"}`)).toBe(BigInt(b) > BigInt(a))
    expect(typeof readNumber(a) === "number").toBe(String(Number(a)) === a)
  })
})

describe("Ordering key of long numbers", () => {
  const key = Result.getOrThrow(compileOrdering("body.id"))
  const lineOf = (body: string) => key.of(request(body))

  it("Each long id has its own ordering key, as a number or as a text", () => {
    expect(lineOf(`{"id":${id}}`)).not.toBe(lineOf(`{"id":${behind}}`))
    expect(lineOf(`{"id":${id}}`)).toBe(lineOf(`{"id":"${id}"}`))
    expect(lineOf(`{"id":${id}.0}`)).toBe(lineOf(`{"id":${id}}`))
    expect(lineOf('{"id":1e9999}')).not.toBeNull()
  })
})
