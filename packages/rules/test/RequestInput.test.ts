import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { parseQuery } from "@tidegate/model/Message"
import { parseBody, parsingBody, requestInput } from "@tidegate/rules/RequestInput"

describe("parseBody", () => {
  const parse = (type: string | null, body: string | Uint8Array) =>
    parseBody(type === null ? {} : { "content-type": type }, typeof body === "string" ? Buffer.from(body) : body)
  const table: ReadonlyArray<readonly [type: string | null, body: string, expected: unknown]> = [
    ["application/json", '{"a":[1,null]}', { a: [1, null] }],
    ["application/json; charset=utf-8", "1", 1],
    ["application/cloudevents+json", "[]", []],
    ["APPLICATION/JSON", "true", true],
    ["text/json", '"x"', "x"],
    ["application/json", '{"a":', '{"a":'],
    ["application/json", "", ""],
    ["text/plain", '{"a":1}', '{"a":1}'],
    ["application/x-www-form-urlencoded", "a=1", "a=1"],
    ["application/jsonlines", "1\n2", "1\n2"],
    [null, '{"a":1}', { a: 1 }],
    [null, "a=1", "a=1"]
  ]
  for (const [type, body, expected] of table) {
    it(`The body '${body}' with ${type ?? "no type"} is parsed`, () => expect(parse(type, body)).toEqual(expected))
  }

  it("A view into a larger buffer is parsed within its bounds", () => {
    expect(parse("application/json", Buffer.from('xx{"a":1}yy').subarray(2, 9))).toEqual({ a: 1 })
  })

  it.prop("Parsing a body never throws", [Schema.Uint8Array, Schema.NullOr(Schema.String)], ([body, type]) => {
    expect(() => parse(type, body)).not.toThrow()
  })
})

it("A body that is parsed in parts gives the same value as in one step", () => {
  const headers = { "content-type": "application/json" }
  for (const text of ['{"a":[1,2,"é"]}', "[", "[".repeat(2_000), `"${"x".repeat(1_000)}"`, ""]) {
    const body = Buffer.from(text)
    const work = parsingBody(headers, body)
    let parts = 1
    let part = work.next()
    for (; part.done !== true; part = work.next()) parts++
    expect(part.value).toEqual(parseBody(headers, body))
    // What is beyond the limits is not parsed.
    expect(parts).toBe(text.length === 2_000 ? 1 : 3)
  }
})

describe("JSON text of a body for others to parse", () => {
  const json = { "content-type": "application/json" }
  const inputOf = (body: string, headers: Record<string, string> = json) =>
    requestInput({ method: "POST", path: "/", query: "", headers }, Buffer.from(body))
  const readBy = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }

  it.prop("Who parses the text of a body reads what rules read", [Schema.String], ([value]) => {
    for (const body of [value, JSON.stringify({ value }), ` [${value}, 1 ] `]) {
      const input = inputOf(body)
      const text = input.jsonText()
      if (text !== null) expect(readBy(text)).toEqual(input.body())
    }
  })

  it("The text is as it was received, and also that of a body that is no JSON", () => {
    expect(inputOf(' { "a": 1 }').jsonText()).toBe(' { "a": 1 }')
    expect(inputOf('{"a":').jsonText()).toBe('{"a":')
  })

  it("There is no text of a body that only rules read right, or that is parsed already", () => {
    for (const body of ['{"id":12345678901234567782}', '{"n":1e400}', "[".repeat(2_000)]) {
      expect(inputOf(body).jsonText(), body.slice(0, 40)).toBeNull()
    }
    expect(inputOf('{"a":1}', { "content-type": "text/plain" }).jsonText()).toBeNull()
    const parsed = inputOf('{"a":1}')
    parsed.body()
    expect(parsed.jsonText()).toBeNull()
  })
})

describe("parseQuery", () => {
  const table: ReadonlyArray<readonly [query: string, expected: Record<string, unknown>]> = [
    ["", {}],
    ["a=1", { a: "1" }],
    ["a=1&b=2&a=3&a=4", { a: ["1", "3", "4"], b: "2" }],
    ["a=%20+&b=%26", { a: "  ", b: "&" }],
    ["a", { a: "" }],
    ["=x", { "": "x" }],
    ["a=%zz&b=%ff", { a: "%zz", b: "\ufffd" }],
    ["constructor=1", { constructor: "1" }]
  ]
  for (const [query, expected] of table) {
    it(`The query "${query}" is parsed`, () => expect({ ...parseQuery(query) }).toEqual(expected))
  }

  it("The query parameter __proto__ is a name like any other", () => {
    expect(JSON.stringify(parseQuery("__proto__=1&__proto__=2"))).toBe('{"__proto__":["1","2"]}')
  })
})
