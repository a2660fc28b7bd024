import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { compile, inParts } from "../src/Formatter.ts"
import { context, outcomeOf, still, tryOut } from "./Run.ts"

const failureOf = (...args: Parameters<typeof tryOut>) => {
  const tried = tryOut(...args)
  return Result.isFailure(tried) ? tried.failure : null
}

describe("Line items", () => {
  it("Line items are processed one by one and combined to the longest list", () => {
    const tried = tryOut("date.compare", {
      start_date: ["2026-01-01T00:00Z", "2026-01-02T00:00Z"],
      end_date: ["2026-01-03T00:00Z"]
    })
    expect(Result.getOrThrow(tried)).toMatchObject({
      output: { days: [2, 13] },
      lineItems: { applied: true, count: 2 },
      warnings: [{ code: "LINE_ITEM_LENGTH_MISMATCH", line_item_index: null }]
    })
  })

  it("Empty list of line items gives an empty result", () =>
    expect(outcomeOf("date.parts", { input: [] }).output?.["year"]).toEqual([]))

  it("Failed line item is named by its index", () => {
    const failure = failureOf(
      "date.format",
      { input: ["2026-01-01", "2026-01-02", "32.13.2026"] },
      { to_format: "YYYY" }
    )
    expect(failure).toMatchObject({
      code: "FORMATTER_DATE_UNPARSEABLE",
      stage: "execution",
      details: { field: "input", line_item_index: 2, value_preview: "32.13.2026" }
    })
  })

  it("Each line item is a separate part of the work, so that other work can run between them", () => {
    const step = Result.getOrThrow(compile({ operation: "text.lowercase" }))
    let parts = 1
    const work = inParts(step, { input: Array.from({ length: 1000 }, () => "A") }, context)
    while (work.next().done !== true) parts++
    expect(parts).toBe(1000)
  })
})

describe("Formatter failures", () => {
  it("Formatter failure names the stage at which it happened", () => {
    expect(failureOf("text.nothing", {})).toMatchObject({ code: "FORMATTER_UNKNOWN_OPERATION", stage: "config" })
    expect(failureOf("text.lowercase", { input: "a" }, { locale: "zz" })).toMatchObject({
      code: "FORMATTER_LOCALE_UNKNOWN",
      stage: "config"
    })
    expect(failureOf("number.phone", { input: "1" }, { region: "ZZ" })).toMatchObject({
      code: "FORMATTER_CONFIG_INVALID",
      stage: "config",
      details: { field: "region" }
    })
    expect(failureOf("number.formula", { formula: "1+" })).toMatchObject({
      code: "FORMATTER_FORMULA_SYNTAX",
      stage: "input",
      details: { position: 2 }
    })
    expect(failureOf("text.find", { input: "a" })).toMatchObject({
      code: "FORMATTER_INPUT_REQUIRED",
      stage: "input",
      details: { field: "find" }
    })
    expect(failureOf("number.formula", { formula: "1/0" })).toMatchObject({
      code: "FORMATTER_DIVISION_BY_ZERO",
      stage: "execution"
    })
    const twice = [
      ["a", 1],
      ["a", 2]
    ]
    expect(failureOf("utility.lookup_table", { input: "a" }, { table: twice })).toMatchObject({
      code: "FORMATTER_CONFIG_INVALID",
      stage: "config",
      details: { field: "table" }
    })
    expect(failureOf("text.lowercase", { input: "a" }, {}, { timezone: "Mars" })).toMatchObject({
      code: "FORMATTER_TIMEZONE_UNKNOWN"
    })
    const old = compile({ operation: "text.lowercase", engine_version: "0.9.0" })
    expect(Result.isFailure(old) && old.failure.code).toBe("FORMATTER_VERSION_UNSUPPORTED")
  })

  it("Formatter refuses an input given as an option and an option given as an input", () => {
    expect(failureOf("text.find", { input: "a", find: "a" }, { offset: 1 })).toMatchObject({
      code: "FORMATTER_CONFIG_INVALID",
      details: { field: "offset" }
    })
    expect(failureOf("text.find", { input: "a", find: "a", case_sensitive: false })).toMatchObject({
      code: "FORMATTER_INPUT_INVALID"
    })
    expect(failureOf("text.find", { input: "a", find: "a" }, { constructor: 1 })).toMatchObject({
      code: "FORMATTER_CONFIG_INVALID"
    })
  })
})

describe("Formatter limits", () => {
  it("Formatter limits are checked before the work begins", () => {
    const many = Array.from({ length: 1001 }, () => "a")
    expect(failureOf("text.lowercase", { input: many })).toMatchObject({
      code: "FORMATTER_LIMIT_EXCEEDED",
      details: { limit: 1000, actual: 1001 }
    })
    expect(failureOf("text.lowercase", { input: "é".repeat(70_000) })).toMatchObject({
      code: "FORMATTER_LIMIT_EXCEEDED",
      details: { limit: 131_072, actual: 140_000 }
    })
    const large = Array.from({ length: 10 }, () => "a".repeat(100_000))
    expect(failureOf("text.lowercase", { input: large })).toMatchObject({ code: "FORMATTER_OUTPUT_TOO_LARGE" })
  })

  it("Formatter time limit applies to all line items together", () => {
    const sentence = `${"please come and see us there, and bring the others along; ".repeat(4)}two weeks after the first monday of next month`
    expect(failureOf("date.format", { input: [sentence] }, { to_format: "YYYY" })).toBeNull()
    const fuzzy = Array.from({ length: 1000 }, () => sentence)
    expect(failureOf("date.format", { input: fuzzy }, { to_format: "YYYY" })).toMatchObject({
      code: "FORMATTER_TIMEOUT",
      stage: "execution"
    })
  })

  it("Formatter time limit applies to each line item separately", () => {
    const chunks = { input: "a".repeat(60_000), chunk_size: 20_000, overlap: 19_900 }
    expect(failureOf("text.split_chunks", chunks)).toMatchObject({
      code: "FORMATTER_TIMEOUT",
      details: { limit: 40 }
    })
  })

  it("Formatter size limit counts texts inside objects and lists and texts that are compared", () => {
    const large = "x".repeat(100_000)
    const variables = { a: large, b: large, c: large }
    expect(failureOf("number.formula", { formula: "1", variables })).toMatchObject({ code: "FORMATTER_LIMIT_EXCEEDED" })
    const formula = Array.from({ length: 70 }, () => "(a=b)").join("&")
    const pair = { a: "x".repeat(80_000), b: "x".repeat(80_000) }
    expect(failureOf("number.formula", { formula, variables: pair })).toMatchObject({
      code: "FORMATTER_FORMULA_LIMIT"
    })
  })

  it("Formatter keeps fifty warnings and reports that there were more", () => {
    const { warnings = [] } = outcomeOf("text.lowercase", { input: Array.from({ length: 100 }, (_, at) => at) })
    expect(warnings).toHaveLength(51)
    expect(warnings.at(-1)).toBe("WARNINGS_CAPPED")
  })
})

describe("Random values of the formatter", () => {
  const draw = (seed: string) =>
    outcomeOf("number.random", { upper: 1_000_000, count: 5 }, {}, { seed }).output?.["result"]

  it("Random value follows from the seed", () => {
    expect(draw("a")).toEqual(draw("a"))
    expect(draw("a")).not.toEqual(draw("b"))
  })

  it("Random value differs between line items", () => {
    const { output } = outcomeOf("number.formula", { formula: "RAND() + 0*x", variables: { x: [1, 2, 3] } })
    expect(new Set(output?.["result"] as ReadonlyArray<number>).size).toBe(3)
  })

  it("Random numbers are evenly distributed and include both bounds", () => {
    const seen = new Map<unknown, number>()
    for (let at = 0; at < 60; at++) {
      const { output } = outcomeOf("number.random", { lower: 1, upper: 6, count: 100 }, {}, { seed: String(at) })
      for (const one of (output?.["result"] ?? []) as ReadonlyArray<number>) seen.set(one, (seen.get(one) ?? 0) + 1)
    }
    expect([...seen.keys()].map(Number).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6])
    for (const count of seen.values()) expect(Math.abs(count - 1000)).toBeLessThan(150)
  })
})

it("Pattern search that takes too long is stopped by the caller's clock", () => {
  let now = 0
  const clock = () => (now += 10)
  const inputs = { input: "a".repeat(50), pattern: "a", replace: "b" }
  expect(failureOf("text.replace_pattern", inputs, {}, { clock })).toMatchObject({ code: "FORMATTER_TIMEOUT" })
  expect(failureOf("text.replace_pattern", inputs, {}, { clock: still })).toBeNull()
})

describe("Repeated pattern search", () => {
  const prose = "the quick brown fox jumps over the lazy dog. ".repeat(1_450)
  const replaced = (millisPerReading: number) => {
    const step = Result.getOrThrow(compile({ operation: "text.replace_pattern", options: {} }))
    let millis = 0
    const clock = () => (millis += millisPerReading)
    const work = inParts(step, { input: prose, pattern: "[a-z]+", replace: "x" }, { ...context, clock })
    let parts = 0
    for (;;) {
      const part = work.next()
      if (part.done === true) return { parts, outcome: part.value }
      parts++
    }
  }

  it("Long pattern search yields to other work and may use 200 ms of processor time", () => {
    // 13,000 matches, of which each takes 0.015 ms.
    const { outcome, parts } = replaced(0.015)
    expect(Result.isSuccess(outcome)).toBe(true)
    expect(parts).toBeGreaterThan(10)
  })

  it("Pattern search returns each match in 64 KB of text with its position", () => {
    const text = `${"é".repeat(10)}😀 ${prose.slice(0, 64_000)}`
    const { output, warnings } = outcomeOf("text.extract_pattern", { input: text, pattern: "[a-z]+" }, { which: "all" })
    const matches = output!["matches"] as ReadonlyArray<{ start: number; end: number; groups: { "0": string } }>
    expect(warnings).toEqual(["OUTPUT_CAPPED"])
    expect(matches).toHaveLength(1000)
    const characters = Array.from(text)
    for (const { end, groups, start } of matches) expect(characters.slice(start, end).join("")).toBe(groups["0"])
  })

  it("Pattern for a long text is refused when its search is too expensive", () => {
    const input = prose.slice(0, 65_000)
    const replaced = (pattern: string, text = input) =>
      outcomeOf("text.replace_pattern", { input: text, pattern, replace: "" })
    expect(replaced(String.raw`(\w+\W+){5}`).output).toBeDefined()
    expect(replaced(String.raw`(\w+\W+){50}`)).toEqual({ failed: "FORMATTER_LIMIT_EXCEEDED" })
    expect(replaced(String.raw`[a-z ]{600}`, input.slice(0, 4000))).toEqual({ failed: "FORMATTER_LIMIT_EXCEEDED" })
  })

  it("Pattern search is stopped after 250 ms of processor time", () => {
    const { outcome } = replaced(0.05)
    expect(Result.isFailure(outcome) ? outcome.failure.code : null).toBe("FORMATTER_TIMEOUT")
  })
})
