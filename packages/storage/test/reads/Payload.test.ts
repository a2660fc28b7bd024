import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { describe } from "vitest"
import { headerOf, parseQuery, readBody, readHeaders } from "../../src/reads/Payload.ts"

const json = "application/json; charset=utf-8"
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("bodies", () => {
  it.each<readonly [name: string, body: Uint8Array, type: string | null, expected: object]>([
    ["JSON", bytes('{"a":[1]}'), json, { body: { a: [1] }, encoding: "json" }],
    ["JSON of a vendor's type", bytes("1"), "application/vnd.x+json", { body: 1, encoding: "json" }],
    ["JSON that does not say so", bytes("[true]"), null, { body: [true], encoding: "json" }],
    ["JSON that says it is text", bytes("[true]"), "text/plain", { body: "[true]", encoding: "text" }],
    ["what only says it is JSON", bytes("{oops"), json, { body: "{oops", encoding: "text" }],
    ["a number that JSON cannot write", bytes("1e999"), json, { body: "1e999", encoding: "text" }],
    ["a form", bytes("a=1"), "application/x-www-form-urlencoded", { body: "a=1", encoding: "text" }],
    ["nothing", bytes(""), json, { body: "", encoding: "text" }],
    ["bytes", Uint8Array.of(0xff, 0x00), json, { body: "/wA=", encoding: "base64" }],
    ["too deep a value", bytes("[".repeat(5000) + "]".repeat(5000)), json, { encoding: "text" }],
    ["brackets in a text", bytes(JSON.stringify('[{"\\'.repeat(5000))), json, { encoding: "json" }],
    ["a large value", bytes(`"${"x".repeat(1024 * 1024)}"`), json, { encoding: "text" }]
  ])("%s", (_name, body, type, expected) => {
    expect(readBody(body, type)).toMatchObject(expected)
  })

  it.prop("any JSON reads back", [Schema.Json], ([value]) => {
    expect(readBody(bytes(JSON.stringify(value)), json)).toEqual({
      body: JSON.parse(JSON.stringify(value)) as unknown,
      encoding: "json"
    })
  })
})

describe("headers and queries", () => {
  it("takes the first of several values", () => {
    const headers = readHeaders('{"a":"1","b":["2","3"]}')
    expect([headerOf(headers, "a"), headerOf(headers, "b"), headerOf(headers, "c")]).toEqual(["1", "2", null])
    expect(headerOf(headers, "constructor")).toBeNull()
  })

  it("lists repeated names, and none is special", () => {
    expect(parseQuery("a=1&b=2&a=3&a=&c")).toEqual({ a: ["1", "3", ""], b: "2", c: "" })
    expect(Object.entries(parseQuery("__proto__=x&constructor=y"))).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"]
    ])
    expect(parseQuery("")).toEqual({})
    expect(parseQuery("%zz=%ff")).toEqual({ "%zz": "\ufffd" })
  })
})
