import { Context, Random, Result } from "effect"
import { describe, expect, it } from "vitest"
import { operations } from "../src/Operations.ts"
import { testOperation } from "../src/OperationTest.ts"
import { still } from "./Run.ts"

const versions = { icu: "78.2", cldr: "48.0", tz: "2025c", phone: "1.13.16" }
const now = Date.parse("2026-01-15T12:30:00Z")

const tryBody = (body: unknown) => {
  const work = testOperation(body, { clock: still, now, versions })
  for (;;) {
    const part = work.next()
    if (part.done === true) return part.value
  }
}

/** What is answered. */
const answerTo = (body: unknown) => {
  const tried = tryBody(body)
  if (Result.isFailure(tried)) throw new Error(tried.failure.code)
  return tried.success
}

const body = {
  config: { operation: "text.replace", engine_version: "1.0.0", options: {} },
  inputs: { input: "{{trigger.body.name}}", find: "-", replace: " " },
  context: { trigger: { body: { name: "ada-lovelace" } }, steps: {} },
  anchor_at: "2026-01-01T00:00:00.000Z",
  timezone: "UTC",
  seed: "test"
}

const step = (operation: string, inputs: object, more: object = {}) => ({
  ...body,
  config: { operation },
  inputs,
  ...more
})

describe("Formatter test call", () => {
  it("Formatter test call resolves templates, runs the operation and narrows the output schema", () => {
    expect(answerTo(body)).toEqual({
      operation: "text.replace",
      engine_version: "1.0.0",
      resolved_input: { input: "ada-lovelace", find: "-", replace: " " },
      output: { result: "ada lovelace" },
      output_schema: { type: "object", properties: { result: { type: "string" } }, required: ["result"] },
      warnings: [],
      line_items: { applied: false, count: 0 },
      anchor_at: "2026-01-01T00:00:00.000Z",
      data_versions: versions
    })
    const lines = tryBody(
      step(
        "text.lowercase",
        { input: "{{trigger.lines[].sku}}" },
        { context: { trigger: { lines: [{ sku: "A" }, { sku: "B" }] } } }
      )
    )
    expect(Result.isSuccess(lines) && lines.success).toMatchObject({
      output: { result: ["a", "b"] },
      output_schema: { properties: { result: { type: "array", items: { type: "string" } } } },
      line_items: { applied: true, count: 2 }
    })
  })

  it("Formatter test call takes the two values of a calculation by name, but not together with the list", () => {
    const of = (inputs: object, options: object = { operation: "divide" }) => {
      const tried = tryBody({ ...body, config: { operation: "number.math", options }, inputs })
      return Result.isSuccess(tried) ? [tried.success.resolved_input, tried.success.output] : tried.failure.code
    }
    expect(of({ a: 10, b: 4 })).toEqual([{ values: [10, 4] }, { result: 2.5 }])
    expect(of({ b: 4, a: "10" })).toEqual([{ values: ["10", 4] }, { result: 2.5 }])
    expect(of({ a: -5 }, { operation: "abs" })).toEqual([{ values: -5 }, { result: 5 }])
    expect(of({ a: 1, values: [2] })).toBe("FORMATTER_INPUT_INVALID")
    expect(of({ a: 1, c: 2 })).toBe("FORMATTER_INPUT_INVALID")
    expect(of({})).toBe("FORMATTER_INPUT_REQUIRED")
  })

  it("Formatter test call uses the anchor, the time zone and the seed of its body", () => {
    const dated = tryBody({
      ...step("date.format", { input: "tomorrow" }),
      config: { operation: "date.format", options: { to_format: "YYYY-MM-DD ZZ" } },
      timezone: "Asia/Tokyo",
      anchor_at: "2026-01-01T20:00:00Z"
    })
    expect(Result.isSuccess(dated) && dated.success.output).toEqual({ result: "2026-01-03 +09:00" })
    const { anchor_at: _, ...without } = body
    const at = tryBody(without)
    expect(Result.isSuccess(at) && at.success.anchor_at).toBe(new Date(now).toISOString())
    const drawn = (seed: string) => JSON.stringify(tryBody({ ...step("number.random", { upper: 1e9 }), seed }))
    expect(drawn("a")).not.toBe(drawn("b"))
  })

  it("Formatter test call warns about a template that finds no value", () => {
    const { warnings } = answerTo(step("text.length", { input: "{{trigger.nowhere}}" }))
    expect(warnings).toEqual([
      {
        code: "TEMPLATE_VALUE_MISSING",
        field: "input",
        line_item_index: null,
        message: "a template stands for nothing"
      }
    ])
    expect(tryBody(step("text.lowercase", { input: "{{trigger.nowhere}}" }))).toMatchObject({
      failure: { code: "FORMATTER_INPUT_REQUIRED", stage: "input" }
    })
    expect(tryBody(step("text.lowercase", { input: "{{trigger" }))).toMatchObject({
      failure: { code: "FORMATTER_TEMPLATE_INVALID", stage: "input", details: { field: "input" } }
    })
  })

  it("Template in a formula is bound as a variable and never as formula text", () => {
    const sample = { trigger: { body: { price: 5, evil: "1)+SUM(100" } } }
    const priced = tryBody(
      step("number.formula", { formula: "{{trigger.body.price}} * 2 + x", variables: { x: 1 } }, { context: sample })
    )
    expect(Result.isSuccess(priced) && priced.success.output).toEqual({ result: 11 })
    const evil = tryBody(step("number.formula", { formula: "LEN({{ trigger.body.evil }})" }, { context: sample }))
    expect(Result.isSuccess(evil) && evil.success.output).toEqual({ result: 10 })
  })

  it.each([
    ['IF({{trigger.name ?? "{}"}}="x",1,2)', { name: "1+1,99,0)&IF(1=1" }, { result: 2 }],
    ['LEN({{trigger["{}"]}})', { "{}": '"&1' }, { result: 3 }],
    ["{{trigger.a}}&{{trigger.A}}", { a: "x", A: "y" }, { result: "xy" }],
    ['{{trigger.none ?? "}}"}}&"a"', {}, { result: "}}a" }]
  ])("Formula never reads data from a template as formula text: %s", (formula, trigger, output) => {
    expect(answerTo(step("number.formula", { formula }, { context: { trigger } })).output).toEqual(output)
  })

  it("Formula joins the variables of a list with those of its templates", () => {
    const context = { trigger: { x: 3 } }
    const inputs = { formula: "a*{{trigger.x}}*b", variables: [["a", 2], { key: "b", value: 5 }] }
    expect(answerTo(step("number.formula", inputs, { context })).output).toEqual({ result: 30 })
  })

  it.each([
    ['"Hello {{trigger.name}}"', "FORMATTER_FORMULA_SYNTAX", "config"],
    ["1 + {{trigger.x", "FORMATTER_TEMPLATE_INVALID", "input"],
    ["{{nowhere.x}}", "FORMATTER_TEMPLATE_INVALID", "input"]
  ])("Formula with an invalid template is refused: %s", (formula, code, stage) => {
    expect(tryBody(step("number.formula", { formula }))).toMatchObject({ failure: { code, stage } })
  })

  it.each([
    ["FORMATTER_PATTERN_INVALID", "text.extract_pattern", { input: "a" }, "pattern", "("],
    ["FORMATTER_TIMEZONE_UNKNOWN", "date.parts", { input: "now" }, "timezone", "Mars/Utopia"],
    ["FORMATTER_CURRENCY_UNKNOWN", "number.currency", { input: 1 }, "currency", "ZZZ"]
  ])("Error %s names the stage of a written or a template value", (code, operation, inputs, field, value) => {
    expect(tryBody(step(operation, { ...inputs, [field]: value }))).toMatchObject({
      failure: { code, stage: "config", details: { field } }
    })
    const context = { trigger: { value } }
    expect(tryBody(step(operation, { ...inputs, [field]: "{{trigger.value}}" }, { context }))).toMatchObject({
      failure: { code, stage: "input", details: { field } }
    })
  })

  it("Refused formatter test call names the engine version that it asked for, or the current version", () => {
    const { config: _, ...rest } = body
    const refusedBy = (engine_version?: string) =>
      tryBody({ ...rest, config: { operation: "text.trim", engine_version, options: { side: "left" } } })
    expect(refusedBy()).toMatchObject({ failure: { code: "FORMATTER_CONFIG_INVALID", engine_version: "1.0.0" } })
    expect(refusedBy("0.9.0")).toMatchObject({
      failure: { code: "FORMATTER_VERSION_UNSUPPORTED", engine_version: "0.9.0" }
    })
  })

  it.each([
    [null, "body"],
    [[], "body"],
    [{}, "config"],
    [{ config: {} }, "config.operation"],
    [{ ...body, config: { operation: "text.length", options: [] } }, "config.options"],
    [{ ...body, config: { operation: "text.length", engine_version: 1 } }, "config.engine_version"],
    [{ ...body, inputs: "x" }, "inputs"],
    [{ ...body, context: [] }, "context"],
    [{ ...body, timezone: 1 }, "timezone"],
    [{ ...body, seed: 1 }, "seed"]
  ])("Formatter test call with the body %j is refused at the path %s", (wrong, path) => {
    expect(tryBody(wrong)).toMatchObject({ failure: { code: "FORMATTER_ENVELOPE_INVALID", fields: [{ path }] } })
  })

  it.each([
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00Z",
    "1899-12-31T00:00:00Z",
    "now",
    5,
    "2026-13-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "9999-12-31T23:59:59-14:00"
  ])("Formatter test call refuses the anchor %j", (anchor_at) => {
    expect(tryBody({ ...body, anchor_at })).toMatchObject({ failure: { code: "FORMATTER_ANCHOR_INVALID" } })
  })

  it("Formatter test call gives the same bytes for the same body", () => {
    for (const operation of operations.values()) {
      const { options, inputs } = operation.sample
      const tried = { ...body, config: { operation: operation.key, options }, inputs }
      expect(JSON.stringify(tryBody(tried))).toBe(JSON.stringify(tryBody(tried)))
    }
  })
})

describe("Random formatter test calls", () => {
  const random = Context.get(Context.empty(), Random.Random)
  const draw = (below: number) => Math.floor(random.nextDoubleUnsafe() * below)
  const one = <A>(of: ReadonlyArray<A>): A => of[draw(of.length)]!
  const texts = [
    "",
    " ",
    "a",
    "a,b;c",
    "3,124",
    "-1.5",
    "2026-01-31",
    "31/12/1999 25:00",
    "tomorrow",
    "+1 month",
    "800-555-1212",
    "<p>x</p>",
    "# h",
    "[a](b)",
    "=1+",
    "IF(1,2)",
    "(a+)+$",
    "\\",
    "\ud800",
    "👋",
    "İ",
    "{{trigger.x}}",
    "{{",
    "__proto__",
    "US",
    "EUR",
    "Europe/Berlin",
    "YYYY-MM-DD",
    "9".repeat(400),
    "x".repeat(3000),
    "1e400",
    "null"
  ]
  const value = (depth: number): unknown => {
    const kind = draw(depth > 2 ? 6 : 9)
    if (kind < 3) return one(texts)
    if (kind === 3) return one([0, -1, 1.5, 1e21, -1e308, 2 ** 53, NaN, 20, 1000])
    if (kind === 4) return one([true, false, null])
    if (kind === 5) return one(texts) + one(texts)
    if (kind < 8) return Array.from({ length: draw(5) }, () => value(depth + 1))
    return Object.fromEntries(
      Array.from({ length: draw(4) }, () => [one([...texts, "a", "price", "quantity"]), value(depth + 1)])
    )
  }
  /** Of an operation: most of its fields, some with what they take. */
  const written = (): unknown => {
    const { fields, key } = one([...operations.values()])
    const of = (mappable: boolean) =>
      Object.fromEntries(
        Object.entries(fields)
          .filter(([, field]) => field.mappable === mappable && draw(10) > 1)
          .map(([name, { choices }]) => [name, choices !== null && draw(4) > 0 ? one(choices).value : value(0)])
      )
    return { config: { operation: key, options: of(false) }, inputs: of(true), context: { trigger: { x: value(0) } } }
  }

  it("Random formatter test calls fail only with documented errors", () => {
    const codes = new Map<string, number>()
    for (let at = 0; at < 10_000; at++) {
      const tried = draw(20) === 0 ? value(0) : written()
      const outcome = tryBody(tried)
      const code = Result.isSuccess(outcome) ? "OK" : outcome.failure.code
      codes.set(code, (codes.get(code) ?? 0) + 1)
      if (Result.isFailure(outcome) && "message" in outcome.failure) {
        expect(outcome.failure.message, JSON.stringify(tried)).not.toContain("cannot handle this input")
      }
    }
    // They get as far as a value, and as far as most of the errors.
    expect(codes.get("OK")).toBeGreaterThan(500)
    expect(codes.size).toBeGreaterThan(12)
  })
})
