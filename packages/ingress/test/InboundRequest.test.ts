import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { externalId, readHeaders } from "../src/InboundRequest.ts"

describe("Request headers", () => {
  it("Request headers have lower-case names, and repeated headers are a list in their order", () => {
    expect(readHeaders(["A", "1", "b", "2", "a", "3", "A", "4", "B", "5"])).toEqual({
      a: ["1", "3", "4"],
      b: ["2", "5"]
    })
  })

  it("Request headers with names of built-in object properties are ordinary headers", () => {
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
  it.prop("Request headers are kept completely", [Schema.Array(Schema.Tuple([Name, Schema.String]))], ([sent]) => {
    const headers = readHeaders(sent.flat())
    const found = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
    const expected = sent.map(([name, value]) => [name.toLowerCase(), value])
    const order = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>) => String(a[0]).localeCompare(String(b[0]))
    expect(found.toSorted(order)).toEqual(expected.toSorted(order))
  })
})

describe("External id of a request", () => {
  const table: ReadonlyArray<readonly [Readonly<Record<string, string | ReadonlyArray<string>>>, string | null]> = [
    [{}, null],
    [{ "x-request-id": "r" }, "r"],
    [{ "idempotency-key": "i", "x-request-id": "r", "webhook-id": "w" }, "w"],
    [{ "webhook-id": "", "svix-id": "s" }, "s"],
    [{ "webhook-id": ["a", "b"], "idempotency-key": "i" }, "i"],
    [{ "x-github-delivery": "x".repeat(256) }, "x".repeat(255)]
  ]
  for (const [headers, id] of table) {
    it(`External id is read from ${JSON.stringify(headers).slice(0, 60)}`, () => expect(externalId(headers)).toBe(id))
  }
})
