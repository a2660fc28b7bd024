import { describe, expect, it } from "vitest"
import { readNumber } from "@tidegate/json/ExactNumber"
import { writeJson } from "@tidegate/json/NumberMarks"
import type { JsonObject } from "../src/transfer/Json.ts"
import { parseYaml, printYaml } from "../src/transfer/Yaml.ts"

const parse = (text: string) => parseYaml(Buffer.from(text), "file.yaml")
const refused = (text: string | Uint8Array): string => {
  try {
    parseYaml(Buffer.from(text), "file.yaml")
  } catch (error) {
    return (error as Error).message
  }
  return "taken"
}

describe("YAML file", () => {
  it("Printed YAML parses to the same value, and the parser knows the line of each path", () => {
    const value = {
      version: 1,
      sources: [{ name: "a", code: "one\ntwo\n", yes: "yes", number: "012", none: null, on: true }]
    }
    expect(parse(printYaml(value)).value).toEqual(value)
    const { lineOf } = parse("version: 1\nsources:\n  - name: a\n    config:\n      mode: x\n")
    expect([["version"], ["sources", 0, "config", "mode"], ["sources", 0, "nothing"], ["nowhere"]].map(lineOf)).toEqual(
      [1, 5, 3, 1]
    )
  })

  it("YAML keeps all digits of numbers, and texts of digits stay texts", () => {
    const written = ["12345678901234567891", "-0.1000000000000000055", "1e+400", "9007199254740993", "1.5", "12"]
    const value = { numbers: written.map(readNumber), texts: written }
    const text = printYaml(value)
    expect(text).toBe(
      `numbers:\n${written.map((one) => `  - ${one}\n`).join("")}texts:\n${written.map((one) => `  - "${one}"\n`).join("")}`
    )
    const read = parse(text)
    expect(writeJson(read.value)).toBe(`{"numbers":[${written.join()}],"texts":${JSON.stringify(written)}}`)
    expect(printYaml(read.value as JsonObject)).toBe(text)
    expect(writeJson(parse(writeJson(value, 2)).value)).toBe(writeJson(value))
    // As people write numbers.
    const byHand =
      "- +12345678901234567891\n- 0012345678901234567891\n- .12345678901234567891\n- 12345678901234567891.\n- 0x1f"
    const digits = "12345678901234567891"
    expect(writeJson(parse(byHand).value)).toBe(`[${digits},${digits},0.${digits},${digits},31]`)
  })

  it("Printed YAML contains no terminal control characters and parses to the same value", () => {
    const hostile = ["\u009b31mred", "\u007f", "a\u202eb", "one\n\u009dtwo\n", "\u001b[31m", "\\u009b", "\u0085"]
    const value = { version: 1, sources: hostile.map((name) => ({ name, code: name, [name]: { [name]: name } })) }
    const text = printYaml(value)
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
    expect(parse(text).value).toEqual(value)
  })

  it.each<[string, string | Uint8Array, string]>([
    ["text that is not YAML", "version: 1\nsources: [", "file.yaml:2: "],
    ["a name twice", "version: 1\nversion: 2", "file.yaml:2: version is there twice"],
    ["an anchor", "a: &x 1\nb: 2", "file.yaml:1: anchors and aliases"],
    ["an alias", "a: 1\nb: *x", "file.yaml:2: "],
    ["a tag", "a: !!js/function 'x'", "file.yaml:1: "],
    ["a name that is not a text", "? [a]\n: 1", "file.yaml:1: a name must be a text"],
    ["no number", "a: .inf", "file.yaml:1: is no number"],
    ["no text", new Uint8Array([0xff, 0xfe]), "file.yaml is not UTF-8 text"]
  ])("YAML parser refuses a file and names the line: %s", (_, text, message) => {
    expect(refused(text)).toContain(message)
  })

  it("YAML parser limits aliases, nesting and the size of a file", () => {
    const laughs = [
      "a: &a [x,x,x,x,x,x,x,x,x]",
      ..."bcdefgh".split("").map((name, n) => `${name}: &${name} [${`*${"abcdefgh"[n]},`.repeat(9)}]`)
    ]
    expect(refused(laughs.join("\n"))).toContain("anchors and aliases")
    expect(refused("[".repeat(1_000_000))).toBe("file.yaml is nested too deeply")
    expect(refused(`a: ${"[".repeat(200)}${"]".repeat(200)}`)).toContain("nested more than 64 levels")
    expect(
      refused(`${" ".repeat(0)}${Array.from({ length: 300 }, (_, n) => `${"  ".repeat(n)}a:`).join("\n")}`)
    ).toContain("nested")
    expect(refused(Array.from({ length: 260_000 }, () => "- 1").join("\n"))).toContain(
      "more than 250000 values and lines"
    )
    expect(refused("- ".repeat(20_000))).toContain("nested too deeply")
    expect(refused(Array.from({ length: 60_000 }, (_, n) => `k${n}: 1`).join("\n"))).toBe("taken")
  })

  it("YAML parser keeps the name __proto__ as an ordinary member", () => {
    expect(parse("__proto__: {a: 1}").value).toEqual(JSON.parse('{"__proto__":{"a":1}}'))
    expect(({} as { a?: number }).a).toBeUndefined()
  })
})
