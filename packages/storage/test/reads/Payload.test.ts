import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { describe } from "vitest"
import { ExactNumber } from "@tidegate/json/ExactNumber"
import { parseQuery } from "@tidegate/model/Message"
import { headerOf, likelyEncoding, readBody, readHeaders, valueBudget } from "../../src/reads/Payload.ts"
import { repeatedly, toRequestData } from "../../src/reads/RequestRow.ts"

const json = "application/json; charset=utf-8"
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe("bodies", () => {
  it.each<readonly [name: string, body: Uint8Array, type: string | null, expected: object]>([
    ["JSON", bytes('{"a":[1]}'), json, { body: { a: [1] }, encoding: "json" }],
    ["JSON of a vendor's type", bytes("1"), "application/vnd.x+json", { body: 1, encoding: "json" }],
    ["JSON that does not say so", bytes("[true]"), null, { body: [true], encoding: "json" }],
    ["JSON that says it is text", bytes("[true]"), "text/plain", { body: "[true]", encoding: "text" }],
    ["what only says it is JSON", bytes("{oops"), json, { body: "{oops", encoding: "text" }],
    ["a number that no double holds", bytes("1e999"), json, { body: new ExactNumber("1e999"), encoding: "json" }],
    ["a number beyond what is calculated with", bytes("1e99999"), json, { body: "1e99999", encoding: "text" }],
    ["a form", bytes("a=1"), "application/x-www-form-urlencoded", { body: "a=1", encoding: "text" }],
    ["nothing", bytes(""), json, { body: "", encoding: "text" }],
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
    ["text that JSON is not asked of", bytes("[".repeat(513)), "text/plain", { encoding: "text", reason: null }],
    [
      "large text",
      bytes(`${"x".repeat(65_535)}\u00e9${"y".repeat(1024 * 1024)}`),
      "text/plain",
      { body: "x".repeat(65_535), encoding: "text", isPreview: true }
    ],
    [
      "text that is just not large",
      bytes("x".repeat(1024 * 1024)),
      "text/plain",
      { body: "x".repeat(1024 * 1024), isPreview: false }
    ]
  ])("%s", (_name, body, type, expected) => {
    expect(readBody(body, type)).toMatchObject(expected)
  })

  it.prop("any JSON reads back", [Schema.Json], ([value]) => {
    expect(readBody(bytes(JSON.stringify(value)), json)).toEqual({
      body: JSON.parse(JSON.stringify(value)) as unknown,
      encoding: "json",
      isPreview: false,
      reason: null
    })
  })
})

describe("bodies of one answer", () => {
  it("have as many values together as one may have", () => {
    const budget = valueBudget()
    const body = bytes(`[${"0,".repeat(39_998)}0]`)
    const shown = [1, 2, 3].map(() => readBody(body, json, budget))
    expect(shown.map(({ encoding }) => encoding)).toEqual(["json", "json", "text"])
    expect(shown[2]?.reason).toMatch(/^the bodies of this answer/)
    expect(readBody(bytes("[1,2]"), json, budget).encoding).toBe("json")
  })

  it("are left out where the same one is shown again and again", () => {
    const repeat = repeatedly()
    const row = { id: "", method: "POST", path: "/", query: "", headers: "{}", kept: true, rejection_cause: null }
    const body = bytes(`[${"0,".repeat(39_998)}0]`)
    const data = toRequestData({ ...row, body, start: null, body_size: body.length })!
    expect([repeat(data), repeat(data), repeat(data)].map((one) => one.is_large_payload)).toEqual([false, false, true])
  })
})

describe("the encoding of a body that is not read", () => {
  it.each<readonly [start: Uint8Array, type: string | null, expected: string]>([
    [bytes(' {"a":'), json, "json"],
    [bytes('[{"a":"\u00e9').subarray(0, -1), null, "json"],
    [bytes("a=1"), null, "text"],
    [bytes('{"a":'), "text/plain", "text"],
    [bytes("<a>"), json, "text"],
    [Uint8Array.of(0x89, 0x50, 0x4e, 0x47), json, "base64"],
    [bytes(""), json, "text"]
  ])("%s of %s is %s", (start, type, expected) => expect(likelyEncoding(start, type)).toBe(expected))
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
