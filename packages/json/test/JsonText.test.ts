import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { bodyLimits, type JsonExcess, type JsonLimits, measureJson, parseJson } from "@tidegate/json/JsonText"

const bytes = (text: string): Uint8Array => Buffer.from(text)
const unlimited: JsonLimits = { values: 1e9, levels: 5_000, unlikeMembers: 1e9, escapes: 1e9 }

/** What a value holds: itself, its elements, its members. */
const countOf = (value: unknown): number =>
  typeof value !== "object" || value === null
    ? 1
    : Object.values(value).reduce((sum: number, one: unknown) => sum + countOf(one), 1)
const levelsOf = (value: unknown): number =>
  typeof value !== "object" || value === null
    ? 0
    : 1 + Math.max(0, ...Object.values(value).map((one: unknown) => levelsOf(one)))

describe("Measured JSON text", () => {
  it.prop("Measured values and levels of a JSON text are those of JSON.parse", [Schema.Json], ([value]) => {
    // Texts of a form of their own: a repeated name would be one member and two values.
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 3)]) {
      expect(measureJson(bytes(text), unlimited)).toMatchObject({ excess: null, values: countOf(value) })
      const levels = levelsOf(value)
      expect(measureJson(bytes(text), { ...unlimited, levels }).excess).toBe(null)
      if (levels > 0) expect(measureJson(bytes(text), { ...unlimited, levels: levels - 1 }).excess).toBe("levels")
      const values = countOf(value)
      expect(measureJson(bytes(text), { ...unlimited, values }).excess).toBe(null)
      if (values > 1) expect(measureJson(bytes(text), { ...unlimited, values: values - 1 }).excess).toBe("values")
    }
  })

  it.prop("JSON parser accepts exactly the texts that JSON.parse accepts", [Schema.String], ([text]) => {
    let value: unknown = "none"
    try {
      value = JSON.parse(text)
    } catch {
      // It is none.
    }
    const parsed = parseJson(text)
    expect(parsed.kind === "json" ? parsed.value : "none").toEqual(value)
  })

  it.each<readonly [name: string, json: string, values: number]>([
    ["what looks like structure in a text", '"[{,:}]"', 1],
    ["escaped quotes and backslashes", String.raw`["\\","\"",",\\\","]`, 4],
    ["escapes in a name", String.raw`{"\",\"":1}`, 2],
    ["white space wherever it may be", '\n [ \t1 , { "a" : [ ] , "b":{\r\n} } ] ', 5],
    ["nothing in lists and objects", "[[],{},[ ],{ }]", 5]
  ])("Measured number of JSON values is correct for %s", (_name, json, values) => {
    expect(countOf(JSON.parse(json))).toBe(values)
    expect(measureJson(bytes(json), unlimited)).toMatchObject({ excess: null, values })
  })
})

const list = (count: number, item: (index: number) => string): string =>
  `[${Array.from({ length: count }, (_, index) => item(index)).join(",")}]`
const object = (count: number, name: (index: number) => string): string =>
  `{${Array.from({ length: count }, (_, index) => `"${name(index)}":1`).join(",")}}`
const { escapes, levels, unlikeMembers, values } = bodyLimits

describe("Limits of a JSON body", () => {
  it.each<readonly [name: string, text: string, kind: JsonExcess | "json" | "invalid"]>([
    ["brackets", "[".repeat(5.2e6) + "]".repeat(5.2e6), "levels"],
    ["brackets that do not end", "[".repeat(10e6), "levels"],
    ["braces that do not end", '{"a":'.repeat(2e6), "levels"],
    ["empty lists", `[${"[],".repeat(3.4e6)}[]]`, "values"],
    ["commas", ",".repeat(10e6), "values"],
    ["as many levels as may be", "[".repeat(levels) + "]".repeat(levels), "json"],
    ["one more", "[".repeat(levels + 1) + "]".repeat(levels + 1), "levels"],
    ["as many values as may be", list(values - 1, String), "json"],
    ["one value more", list(values, String), "values"],
    ["objects that are alike", list(9_000, () => object(10, (j) => `k${j}`)), "json"],
    ["objects that are unlike each other", list(1_500, (i) => object(20, (j) => `k${i}_${j}`)), "unlikeMembers"],
    [
      "the same names in another order",
      list(9_000, (i) => object(10, (j) => `k${(i * 7 + j * (i % 97)) % 101}`)),
      "unlikeMembers"
    ],
    ["names that are there now and then", list(250, (i) => object(i, (j) => `k${j}`)), "unlikeMembers"],
    ["one object with as many names", object(unlikeMembers, (i) => `k${i}`), "json"],
    ["one name more", object(unlikeMembers + 1, (i) => `k${i}`), "unlikeMembers"],
    ["many escapes", `"${String.raw`\n`.repeat(escapes)}"`, "json"],
    ["more", `"${String.raw`\n`.repeat(escapes + 1)}"`, "escapes"],
    ["a number as long as may be", `[${"1".repeat(1_024)}]`, "json"],
    ["a long number", "1".repeat(5e6), "digits"],
    ["a number with a far exponent", '{"a":[1e9999,-2E-9999]}', "json"],
    ["a farther one", '{"a":1e999999999}', "digits"],
    ["a farther one below zero", '{"a":-1.5E-0010000}', "digits"],
    ["a long text", `"${"x".repeat(10e6)}"`, "json"],
    ["no end", `["${"x".repeat(10e6)}`, "invalid"]
  ])("JSON parser applies the body limits to %s", (_name, text, kind) => {
    expect(parseJson(bytes(text)).kind).toBe(kind)
    expect(parseJson(text).kind).toBe(kind)
  })

  it("Member names of different lengths are not confused in the limit of object shapes", () => {
    // Were the names of an object one run of bytes, all of these were of one shape.
    const text = list(7_000, (i) =>
      object(3, (j) => "abcdefgh".repeat(20).slice(j * 20 + (i % 20), j * 20 + 20 + (i % 7)))
    )
    expect(parseJson(text).kind).toBe("json")
  })

  it("Measurement of one JSON text does not affect the next", () => {
    expect(parseJson(`{"a":${"[".repeat(400)}`).kind).toBe("invalid")
    expect(parseJson('{"a":[{"b":1}]}')).toEqual({ kind: "json", value: { a: [{ b: 1 }] }, values: 4 })
  })
})
