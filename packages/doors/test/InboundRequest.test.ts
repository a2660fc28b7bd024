import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { externalId, parseBody, parseQuery, readHeaders } from "@tidegate/doors/InboundRequest"

describe("readHeaders", () => {
  it("lower-case names, repeated ones as a list in their order", () => {
    expect(readHeaders(["A", "1", "b", "2", "a", "3", "A", "4", "B", "5"])).toEqual({
      a: ["1", "3", "4"],
      b: ["2", "5"]
    })
  })

  it("names that mean something to objects are names like any other", () => {
    const headers = readHeaders([
      "__proto__",
      "1",
      "constructor",
      "2",
      "__PROTO__",
      "3",
      "__proto__",
      "4",
      "toString",
      "5"
    ])
    expect(JSON.stringify(headers)).toBe('{"__proto__":["1","3","4"],"constructor":"2","tostring":"5"}')
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
  })

  const Name = Schema.Literals(["a", "A", "b", "__proto__", "constructor", "x-long-name", "X-Long-Name"])
  it.prop("loses nothing and invents nothing", [Schema.Array(Schema.Tuple([Name, Schema.String]))], ([sent]) => {
    const headers = readHeaders(sent.flat())
    const found = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
    const expected = sent.map(([name, value]) => [name.toLowerCase(), value])
    const order = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>) => String(a[0]).localeCompare(String(b[0]))
    expect(found.toSorted(order)).toEqual(expected.toSorted(order))
  })
})

describe("externalId", () => {
  const table: ReadonlyArray<readonly [Readonly<Record<string, string | ReadonlyArray<string>>>, string | null]> = [
    [{}, null],
    [{ "x-request-id": "r" }, "r"],
    [{ "idempotency-key": "i", "x-request-id": "r", "webhook-id": "w" }, "w"],
    [{ "webhook-id": "", "svix-id": "s" }, "s"],
    [{ "webhook-id": ["a", "b"], "idempotency-key": "i" }, "i"],
    [{ "x-github-delivery": "x".repeat(256) }, "x".repeat(255)]
  ]
  for (const [headers, id] of table) {
    it(JSON.stringify(headers).slice(0, 60), () => expect(externalId(headers)).toBe(id))
  }
})

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
    it(`${type ?? "no type"}: ${body}`, () => expect(parse(type, body)).toEqual(expected))
  }

  it("a view into a larger buffer is read within its bounds", () => {
    expect(parse("application/json", Buffer.from('xx{"a":1}yy').subarray(2, 9))).toEqual({ a: 1 })
  })

  it.prop("never throws", [Schema.Uint8Array, Schema.NullOr(Schema.String)], ([body, type]) => {
    expect(() => parse(type, body)).not.toThrow()
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
    it(query === "" ? "nothing" : query, () => expect({ ...parseQuery(query) }).toEqual(expected))
  }

  it("__proto__ is a name like any other", () => {
    expect(JSON.stringify(parseQuery("__proto__=1&__proto__=2"))).toBe('{"__proto__":["1","2"]}')
  })
})
