import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { filter } from "../src/Filter.ts"
import { filterTestBody, tried } from "../src/FilterTest.ts"
import * as Written from "./written.ts"

const created = (input: Schema.Json) => Written.created(filter, input)
const failure = <A>(result: Result.Result<A, GatewayError>) =>
  Result.isFailure(result) ? result.failure : expect.fail("it was accepted")
const refused = (input: Schema.Json) => {
  const { code, data } = failure(created(input))
  return [code, (data as { readonly path?: string }).path ?? null]
}

const body = { type: "order.paid" }

describe("Filter", () => {
  it("A filter consists of a name and conditions, which may stand together or each in its own member", () => {
    const { conditions, hash, name } = Result.getOrThrow(created({ name: "paid", conditions: { body } }))
    expect([name, conditions]).toStrictEqual(["paid", { body }])
    expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/)
    const flat = Result.getOrThrow(created({ name: "paid", body, headers: null, path: "/x" }))
    expect(flat.conditions).toStrictEqual({ body, path: "/x" })
    expect(flat.hash).not.toBe(hash)
    // What asks for nothing is not kept.
    const empty = { conditions: { body, headers: {}, query: null } }
    expect(Result.getOrThrow(created({ name: "paid", ...empty }))).toStrictEqual({
      name: "paid",
      conditions: { body },
      hash
    })
    expect(failure(created({ name: "paid", conditions: { body }, path: "/x" }))).toMatchObject({
      code: "VALIDATION_ERROR",
      data: { fields: [{ path: "path" }] }
    })
  })

  it("An invalid filter is rejected with the cause", () => {
    expect(refused({ name: "not a name", conditions: { body } })).toStrictEqual(["INVALID_FILTER_NAME", "name"])
    expect(refused({ name: "", conditions: { body } })).toStrictEqual(["INVALID_FILTER_NAME", "name"])
    expect(refused({ name: "x".repeat(156), conditions: { body } })).toStrictEqual(["INVALID_FILTER_NAME", "name"])
    for (const conditions of [{}, { body: {} }, { body: null, path: null }, null]) {
      expect(refused({ name: "a", conditions })).toStrictEqual(["EMPTY_FILTER", "conditions"])
    }
    expect(refused({ name: "a" })).toStrictEqual(["EMPTY_FILTER", "conditions"])
    expect(refused({ name: "a", body: {} })).toStrictEqual(["EMPTY_FILTER", "conditions"])
    expect(refused({ name: "a", conditions: { method: "POST" } })).toStrictEqual(["RULE_INVALID", "method"])
    expect(refused({ name: "a", conditions: { headers: "x" } })).toStrictEqual(["RULE_INVALID", "headers"])
    const wrong = failure(created({ name: "a", conditions: { body: { total: { $gt: {} } } } }))
    expect(wrong).toMatchObject({ code: "RULE_INVALID", data: { path: "body.total.$gt", operator: "$gt" } })
    // What is no body of a filter at all is told first, and all of it at once.
    expect(failure(created({ name: 1, conditions: [] }))).toMatchObject({
      code: "VALIDATION_ERROR",
      data: { fields: [{ path: "conditions" }, { path: "name" }] }
    })
    expect(refused({ name: 1, conditions: { body } })).toStrictEqual(["INVALID_FILTER_NAME", "name"])
    expect(refused({ conditions: { body } })).toStrictEqual(["INVALID_FILTER_NAME", "name"])
    expect(refused({ name: "a", conditions: [] })).toStrictEqual(["VALIDATION_ERROR", null])
  })

  it("A partial change of a filter keeps the rest and replaces conditions as a whole", () => {
    const stored = Result.getOrThrow(created({ name: "a", conditions: { body, path: "/x" } }))
    const change = (input: Schema.Json) => Written.changed(filter, stored, input)
    expect(Result.getOrThrow(change({}))).toStrictEqual(stored)
    expect(Result.getOrThrow(change({ name: "b" }))).toStrictEqual({ ...stored, name: "b" })
    expect(Result.getOrThrow(change({ conditions: { path: "/y" } }))).toMatchObject({
      name: "a",
      conditions: { path: "/y" }
    })
    expect(Result.getOrThrow(change({ query: { a: "1" } }))).toMatchObject({ conditions: { query: { a: "1" } } })
    expect(failure(change({ body: null })).code).toBe("EMPTY_FILTER")
  })
})

describe("Test of a filter", () => {
  const judged = (written: Schema.JsonObject) => filterTestBody.judge(written)
  const answer = (written: Schema.JsonObject) => {
    const { filter, request } = Result.getOrThrow(judged(written))
    if ("id" in filter || "id" in request) return expect.fail("it names what is stored")
    const work = tried(filter.conditions, request)
    for (;;) {
      const part = work.next()
      if (part.done === true) return Result.getOrThrow(part.value)
    }
  }

  it("The test of a filter reports which targets matched, and ignores omitted ones", () => {
    expect(answer({ filter: { headers: { "x-env": "prod" } }, input: { headers: { "X-Env": "prod" } } })).toMatchObject(
      {
        matched: true,
        targets: { headers: true, body: null, query: null, path: null }
      }
    )
    expect(answer({ conditions: { path: "/", query: { a: { $exist: false } } } }).matched).toBe(true)
    expect(answer({ conditions: { query: { a: "1" } }, request: { query: "?a=1&b=2" } }).matched).toBe(true)
    expect(answer({ conditions: { body: null, path: "/" }, request: { body: null } }).matched).toBe(true)
  })

  it("The test of a filter shows no secret values", () => {
    const { explanation } = answer({
      conditions: { headers: { authorization: { $exist: true } }, body: { card: { token: "x" }, note: "y" } },
      request: {
        headers: { authorization: "Bearer very-secret-token" },
        body: { card: { token: "tok_123" }, note: "see https://ada:pass@example.com/" }
      }
    })
    expect(explanation.map(({ actual }) => actual)).toStrictEqual([
      "[REDACTED]",
      "[REDACTED]",
      "see https://[REDACTED]@example.com/"
    ])
  })

  it("The test of a filter takes one filter and one request, by id or inline", () => {
    expect(Result.getOrThrow(judged({ filter_id: "flt_1", request_id: "req_1" }))).toStrictEqual({
      filter: { id: "flt_1" },
      request: { id: "req_1" }
    })
    const wrong: ReadonlyArray<readonly [Schema.JsonObject, string]> = [
      [{}, "EMPTY_FILTER"],
      [{ conditions: {} }, "EMPTY_FILTER"],
      [{ conditions: { body: { $x: 1 } } }, "RULE_INVALID"],
      [{ conditions: { path: "/" }, filter: { path: "/" } }, "VALIDATION_ERROR"],
      [{ conditions: { path: "/" }, filter_id: "flt_1" }, "VALIDATION_ERROR"],
      [{ conditions: { path: "/" }, request: {}, input: {} }, "VALIDATION_ERROR"],
      [{ conditions: { path: "/" }, request: {}, request_id: "req_1" }, "VALIDATION_ERROR"],
      [{ conditions: { path: "/" }, request: { path: "x" } }, "VALIDATION_ERROR"],
      [{ conditions: { path: "/" }, request: 1 }, "VALIDATION_ERROR"]
    ]
    for (const [written, code] of wrong) expect(failure(judged(written)).code, JSON.stringify(written)).toBe(code)
  })
})
