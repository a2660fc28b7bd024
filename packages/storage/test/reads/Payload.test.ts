import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { describe } from "vitest"
import { ExactNumber } from "@tidegate/json/ExactNumber"
import { parseQuery } from "@tidegate/model/Message"
import { headerOf, likelyEncoding, readBody, readHeaders, valueBudget } from "../../src/reads/Payload.ts"
import { repeatedly, toRequestData } from "../../src/reads/RequestRow.ts"

const json = "application/json; charset=utf-8"
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("Bodies", () => {
  it.each<readonly [name: string, body: Uint8Array, type: string | null, expected: object]>([
    ["JSON", bytes('{"a":[1]}'), json, { body: { a: [1] }, encoding: "json" }],
    ["JSON of a vendor's type", bytes("1"), "application/vnd.x+json", { body: 1, encoding: "json" }],
    ["JSON without a type", bytes("[true]"), null, { body: [true], encoding: "json" }],
    ["JSON of a text type", bytes("[true]"), "text/plain", { body: "[true]", encoding: "text" }],
    ["invalid JSON of a JSON type", bytes("{oops"), json, { body: "{oops", encoding: "text" }],
    ["a number that no double holds", bytes("1e999"), json, { body: new ExactNumber("1e999"), encoding: "json" }],
    ["a number too large to calculate with", bytes("1e99999"), json, { body: "1e99999", encoding: "text" }],
    ["a form", bytes("a=1"), "application/x-www-form-urlencoded", { body: "a=1", encoding: "text" }],
    ["an empty body", bytes(""), json, { body: "", encoding: "text" }],
    ["bytes", Uint8Array.of(0xff, 0x00), json, { body: "/wA=", encoding: "base64" }],
    ["too deep a value", bytes("[".repeat(5000) + "]".repeat(5000)), json, { encoding: "text" }],
    ["brackets in a text", bytes(JSON.stringify('[{"\\'.repeat(5000))), json, { encoding: "json" }],
    ["a large value", bytes(`"${"x".repeat(10e6)}"`), json, { encoding: "json", isPreview: false, reason: null }],
    [
      "too many values",
      bytes(`[${"[],".repeat(200_000)}1]`),
      json,
      { encoding: "text", reason: expect.stringMatching(/100000 JSON values$/) }
    ],
    [
      "too many levels",
      bytes("[".repeat(513)),
      json,
      { encoding: "text", reason: expect.stringMatching(/512 levels$/) }
    ],
    ["brackets of a text type", bytes("[".repeat(513)), "text/plain", { encoding: "text", reason: null }],
    [
      "large text",
      bytes(`${"x".repeat(65_535)}\u00e9${"y".repeat(1024 * 1024)}`),
      "text/plain",
      { body: "x".repeat(65_535), encoding: "text", isPreview: true }
    ],
    [
      "text of the largest shown size",
      bytes("x".repeat(1024 * 1024)),
      "text/plain",
      { body: "x".repeat(1024 * 1024), isPreview: false }
    ]
  ])("A body is decoded by its type and content (%s)", (_name, body, type, expected) => {
    expect(readBody(body, type)).toMatchObject(expected)
  })

  it.prop("Any JSON body is decoded to the same value", [Schema.Json], ([value]) => {
    expect(readBody(bytes(JSON.stringify(value)), json)).toEqual({
      body: JSON.parse(JSON.stringify(value)) as unknown,
      encoding: "json",
      isPreview: false,
      reason: null
    })
  })
})

describe("Bodies of one answer", () => {
  it("All bodies of an answer together may have as many values as one body", () => {
    const budget = valueBudget()
    const body = bytes(`[${"0,".repeat(39_998)}0]`)
    const shown = [1, 2, 3].map(() => readBody(body, json, budget))
    expect(shown.map(({ encoding }) => encoding)).toEqual(["json", "json", "text"])
    expect(shown[2]?.reason).toMatch(/^the bodies of this answer/)
    expect(readBody(bytes("[1,2]"), json, budget).encoding).toBe("json")
  })

  it("A body that is repeated too often in an answer is omitted", () => {
    const repeat = repeatedly()
    const row = { id: "", method: "POST", path: "/", query: "", headers: "{}", kept: true, rejection_cause: null }
    const body = bytes(`[${"0,".repeat(39_998)}0]`)
    const data = toRequestData({ ...row, body, start: null, body_size: body.length })!
    expect([repeat(data), repeat(data), repeat(data)].map((one) => one.is_large_payload)).toEqual([false, false, true])
  })
})

describe("Encoding of a body that is not read", () => {
  it.each<readonly [start: Uint8Array, type: string | null, expected: string]>([
    [bytes(' {"a":'), json, "json"],
    [bytes('[{"a":"\u00e9').subarray(0, -1), null, "json"],
    [bytes("a=1"), null, "text"],
    [bytes('{"a":'), "text/plain", "text"],
    [bytes("<a>"), json, "text"],
    [Uint8Array.of(0x89, 0x50, 0x4e, 0x47), json, "base64"],
    [bytes(""), json, "text"]
  ])("Body %s of type %s looks like %s", (start, type, expected) => expect(likelyEncoding(start, type)).toBe(expected))
})

describe("Headers and queries", () => {
  it("The first of several header values is returned", () => {
    const headers = readHeaders('{"a":"1","b":["2","3"]}')
    expect([headerOf(headers, "a"), headerOf(headers, "b"), headerOf(headers, "c")]).toEqual(["1", "2", null])
    expect(headerOf(headers, "constructor")).toBeNull()
  })

  it("A query lists repeated names, and no name is special", () => {
    expect(parseQuery("a=1&b=2&a=3&a=&c")).toEqual({ a: ["1", "3", ""], b: "2", c: "" })
    expect(Object.entries(parseQuery("__proto__=x&constructor=y"))).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"]
    ])
    expect(parseQuery("")).toEqual({})
    expect(parseQuery("%zz=%ff")).toEqual({ "%zz": "\ufffd" })
  })
})
