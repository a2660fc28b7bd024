import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { parsePath, type PathSegment } from "@tidegate/json/JsonPath"
import { bodyLimits } from "@tidegate/json/JsonText"
import { LargeJson, maxParsedBytes, tooLarge } from "@tidegate/json/LargeJson"

const open = (text: string): LargeJson => {
  const json = LargeJson.of(Buffer.from(text))
  if (json === null) throw new Error("it is not taken for JSON")
  return json
}

/** What is at a path, walked to its end. */
const at = (json: LargeJson, path: string | ReadonlyArray<PathSegment>): unknown => {
  let [value, rest] = json.reach(typeof path === "string" ? parsePath(path)! : path)
  for (const segment of rest) {
    if (typeof value !== "object" || value === null) return undefined
    const name = segment.kind === "key" ? segment.key : segment.kind === "index" ? String(segment.index) : ""
    value = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined
  }
  return value
}

/** White space that makes any list or object one that is gone into. */
const wide = " ".repeat(70_000)

describe("Large JSON text", () => {
  it("Large JSON text returns the values that parsing finds", () => {
    const value = {
      a: [1, { b: 'x"y\\', c: null }, [], {}, [[2]]] as const,
      "ключ\n": true,
      "": { "": "empty" },
      long: 'é😀\\"'.repeat(30_000),
      n: -1.5e3
    }
    const text = JSON.stringify(value).replaceAll(",", `,${wide}`)
    const json = open(` ${text}\n`)
    const found: ReadonlyArray<readonly [path: string, value: unknown]> = [
      ["a[0]", 1],
      ["a[1].b", value.a[1].b],
      ["a[1].c", null],
      ["a[2]", []],
      ["a[3]", {}],
      ["a[4][0][0]", 2],
      ["a.4.0.0", 2],
      ["long", value.long],
      ["n", -1500],
      ['["ключ\n"]', true]
    ]
    for (const [path, expected] of found) expect(at(json, path)).toEqual(expected)
    expect(
      at(json, [
        { kind: "key", key: "" },
        { kind: "key", key: "" }
      ])
    ).toBe("empty")
    for (const path of ["b", "a[5]", "a.x", "n.x", "constructor", "__proto__", "a.length"]) {
      expect(at(json, path)).toBeUndefined()
    }
  })

  it("Large JSON text returns the last of equal members, also when a name is escaped", () => {
    const json = open(`{"a":{"b":1},${wide}"a":{"c":2},"\\u0061":{"d":3}}`)
    expect([at(json, "a.b"), at(json, "a.c"), at(json, "a.d")]).toEqual([undefined, undefined, 3])
  })

  it.each([
    "",
    " ",
    "[",
    "]",
    "{",
    "[1",
    "[1,]",
    "[1 2]",
    "[1}",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    '{"a" 1}',
    '{"a":1]',
    '"a',
    '"a\\"',
    "1 2",
    "[]]",
    `[${"[".repeat(600)}`,
    `${"[".repeat(513)}${"]".repeat(513)}`
  ])("Large JSON text %j is refused as invalid", (text) => {
    expect(LargeJson.of(Buffer.from(text))).toBeNull()
  })

  it("Large JSON text is limited in its number of values", () => {
    const list = (length: number) => Buffer.from(`[${Array<string>(length).fill("1").join(",")}]`)
    expect(LargeJson.of(list(9), { ...bodyLimits, values: 10, levels: 5 })).not.toBeNull()
    expect(LargeJson.of(list(10), { ...bodyLimits, values: 10, levels: 5 })).toBeNull()
  })

  it("Large JSON text finds members by escaped names and the last of equal names", () => {
    const json = open(`{"a":1,"b\\u0063":2,"d":3,"\\u0061":4,"d":5,"\\\\u0064":6,"\\"":7,${wide}"x":0}`)
    const found = (key: string) => json.reach([{ kind: "key", key }])[0]
    expect(["a", "bc", "d", String.raw`\u0064`, '"', String.raw`\u0061`, "e"].map(found)).toEqual([
      4,
      2,
      5,
      6,
      7,
      undefined,
      undefined
    ])
  })

  it("Large JSON text has the same limits on different members and escapes as parsing", () => {
    const members = Array.from({ length: bodyLimits.unlikeMembers + 1 }, (_, i) => `"m${i}":1`)
    expect(LargeJson.of(Buffer.from(`{${members.slice(1).join(",")}}`))).not.toBeNull()
    expect(LargeJson.of(Buffer.from(`{${members.join(",")}}`))).toBeNull()
    expect(LargeJson.of(Buffer.from(`"${"\\n".repeat(bodyLimits.escapes + 1)}"`))).toBeNull()
  })

  it("Large JSON text reports a too large value, and finds nothing in place of a malformed value", () => {
    const long = "x".repeat(maxParsedBytes)
    const json = open(`{"long":"${long}","a":1,"wrong":tru,"half":"\\u00","list":["${long}",2]}`)
    expect(at(json, "long")).toBe(tooLarge)
    expect(at(json, "list")).toBe(tooLarge)
    expect([at(json, "a"), at(json, "list[1]"), at(json, "wrong"), at(json, "half")]).toEqual([
      1,
      2,
      undefined,
      undefined
    ])
    expect(json.reach([])[0]).toBe(tooLarge)
  })

  it("Large JSON text parses a limited number of bytes and nothing twice", () => {
    const part = `"${"x".repeat(maxParsedBytes / 4)}"`
    const json = open(`[${Array<string>(8).fill(part).join(",")}]`)
    for (let i = 0; i < 20; i++) expect(at(json, "[0]")).toHaveLength(maxParsedBytes / 4)
    expect([1, 2, 3, 4].map((i) => at(json, `[${i}]`) === tooLarge)).toEqual([false, false, true, true])
  })

  it.prop("Large JSON text agrees with the parser for any JSON", [Schema.Json], ([value]) => {
    const text = JSON.stringify({ value, wide: 0 }, null, 1).replace('"wide"', `${wide}"wide"`)
    const json = open(text)
    expect(at(json, "value")).toEqual(JSON.parse(text).value)
    for (const [name, inner] of Object.entries(typeof value === "object" && value !== null ? value : {})) {
      const path: ReadonlyArray<PathSegment> = [
        { kind: "key", key: "value" },
        Array.isArray(value) ? { kind: "index", index: Number(name) } : { kind: "key", key: name }
      ]
      expect(at(json, path)).toEqual(JSON.parse(JSON.stringify(inner)))
    }
  })
})
