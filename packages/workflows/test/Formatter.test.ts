import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { compileWorkflow } from "../src/Workflow.ts"
import { catalog, compiled, edge, facts } from "./Graphs.ts"
import { Play } from "./Play.ts"

type Written = Readonly<Record<string, unknown>>

const format = (id: string, action_key: string, invocation_inputs: Written, config: Written = {}): Written => ({
  id,
  kind: "action",
  action: { provider_key: "formatter", action_key },
  invocation_inputs,
  config
})

const played = (step: Written, body: unknown, run = "wfr_1") => {
  const { trigger, ...rest } = facts(body as never)
  const received = { ...trigger, received_at: "2026-03-01T10:00:00.000Z" }
  return new Play(compiled([step], [edge("", "step")]), { ...rest, run: { id: run }, trigger: received })
    .run()
    .at("step")
}

const issuesOf = (step: Written) => {
  const result = compileWorkflow([step], [edge("", "step")], catalog)
  return Result.isFailure(result) ? result.failure.map(({ code, field }) => `${code} ${field}`) : []
}

describe("Formatter steps", () => {
  it("A formatter step is an action with inputs and options", () => {
    const step = format(
      "step",
      "text.truncate",
      { input: "{{trigger.body.name}}", max_length: 5 },
      { formatter: { options: { append_ellipsis: true } } }
    )
    expect(played(step, { name: "Ada Lovelace" })).toMatchObject({ status: "succeeded", output: { result: "Ad..." } })
  })

  it("A formatter step accepts separate inputs in place of a list", () => {
    const inputs = { a: "{{trigger.body.total}}", b: 4 }
    const step = format("step", "number.math", inputs, { formatter: { options: { operation: "divide" } } })
    expect(issuesOf(step)).toEqual([])
    expect(played(step, { total: "10" })).toMatchObject({ status: "succeeded", output: { result: 2.5 } })
  })

  it("A formatter step stores the engine version with which it was saved", () => {
    const { plan, steps } = compiled([format("step", "text.trim", { input: "a" })], [edge("", "step")])
    expect(steps[0]!.config).toEqual({ formatter: { engine_version: "1.0.0", options: {} } })
    expect(plan[0]!.step).toBe(steps[0])
  })

  it("A failed formatter step has an error code of the formatter and is not retried", () => {
    const step = format("step", "text.trim", { input: "{{trigger.body.name}}" })
    expect(played(step, {})).toMatchObject({
      status: "failed",
      attempt: 1,
      error: { code: "FORMATTER_INPUT_REQUIRED" },
      warnings: [
        {
          code: "TEMPLATE_VALUE_MISSING",
          field: "invocation_inputs.input",
          line_item_index: null,
          message: "a template stands for nothing"
        }
      ]
    })
    expect(issuesOf({ ...step, config: { retry: { interval: 1000, count: 1 } } })).toEqual([
      "RETRY_INVALID config.retry"
    ])
  })

  it("A template in a formula is passed as a variable, whatever its value is", () => {
    const step = format("step", "number.formula", { formula: "{{trigger.body.price}} * rate", variables: { rate: 2 } })
    expect(played(step, { price: 4.5 })).toMatchObject({ status: "succeeded", output: { result: 9 } })
    const hostile = played(step, { price: "1 + 1" })
    expect(hostile.output).not.toEqual({ result: 3 })
    expect(hostile.output).not.toEqual({ result: 4 })
  })

  it("A formula from an edge's mapping can use templates and the step's variables", () => {
    const step = format("step", "number.formula", { formula: "1", variables: { rate: 3 } })
    const brought = edge("", "step", { mapping: { formula: "{{trigger.body.price}} + rate" } })
    const play = new Play(compiled([step], [brought]), facts({ price: 4 })).run()
    expect(play.at("step")).toMatchObject({ output: { result: 7 } })
  })

  it("Invalid literal patterns, zones, currencies and formulas are refused in inputs and in mappings", () => {
    const wrong: ReadonlyArray<readonly [action: string, inputs: Written, field: string, code: string]> = [
      ["text.replace_pattern", { input: "a", pattern: "(" }, "pattern", "FORMATTER_PATTERN_INVALID"],
      ["text.extract_pattern", { input: "a", pattern: "(?=a)" }, "pattern", "FORMATTER_PATTERN_INVALID"],
      [
        "date.parts",
        { input: "{{trigger.body.at}}", timezone: "Mars/Olympus" },
        "timezone",
        "FORMATTER_TIMEZONE_UNKNOWN"
      ],
      ["number.currency", { input: 1, currency: "XXY" }, "currency", "FORMATTER_CURRENCY_UNKNOWN"],
      ["number.formula", { formula: "ABND({{trigger.body.x}})" }, "formula", "FORMATTER_FORMULA_UNKNOWN_FUNCTION"],
      ["number.formula", { formula: "1 +" }, "formula", "FORMATTER_FORMULA_SYNTAX"]
    ]
    for (const [action, inputs, field, code] of wrong) {
      const step = format("step", action, inputs)
      const graph = [[step], [edge("", "step")]] as const
      const refused = compileWorkflow(...graph, catalog)
      expect(Result.isFailure(refused) ? refused.failure : []).toEqual([
        expect.objectContaining({
          code: "FORMATTER_CONFIG_INVALID",
          field: `invocation_inputs.${field}`,
          message: expect.stringContaining(code)
        })
      ])
      const brought = compileWorkflow(
        [format("step", action, {})],
        [edge("", "step", { id: "edge", mapping: inputs })],
        catalog
      )
      expect(Result.isFailure(brought) ? brought.failure : []).toMatchObject([
        { edge_id: "edge", field: `mapping.${field}` }
      ])
      // What was stored before goes on, and fails where it comes to that.
      expect(Result.isSuccess(compileWorkflow(...graph, { ...catalog, isStored: true }))).toBe(true)
    }
    const mapped = { input: "a", pattern: "{{trigger.body.pattern}}" }
    expect(issuesOf(format("step", "text.replace_pattern", mapped))).toEqual([])
    expect(played(format("step", "text.replace_pattern", mapped), { pattern: "(" })).toMatchObject({
      error: { code: "FORMATTER_PATTERN_INVALID" }
    })
    expect(issuesOf(format("step", "date.parts", { input: "now", timezone: "" }))).toEqual([])
  })

  it("An invalid template in a formula is reported with its field", () => {
    const step = format("step", "number.formula", { formula: "{{steps.later.output}} + {{nobody.x}}" })
    expect(issuesOf(step)).toEqual(["TEMPLATE_INVALID invocation_inputs.formula"])
    const unknown = format("step", "number.formula", { formula: "{{steps.later.output}} + 1" })
    expect(issuesOf(unknown)).toEqual(["TEMPLATE_REFERENCE_UNKNOWN invocation_inputs.formula"])
  })

  it("The formatter's current time comes from the request, and its random numbers from the run", () => {
    const today = format(
      "step",
      "date.format",
      { input: "now" },
      { formatter: { options: { to_format: "YYYY-MM-DD" } } }
    )
    expect(played(today, {}).output).toEqual({ result: "2026-03-01" })
    const random = format("step", "number.random", { lower: 0, upper: 1_000_000_000 })
    expect(played(random, {}).output).toEqual(played(random, {}).output)
    expect(played(random, {}, "wfr_2").output).not.toEqual(played(random, {}).output)
  })

  it("A value from a template is checked in the run, and a literal one in a mapping at save", () => {
    const step = format("step", "text.extract_pattern", { input: "a", pattern: "{{trigger.body.pattern}}" })
    expect(played(step, { pattern: "(" })).toMatchObject({ error: { code: "FORMATTER_PATTERN_INVALID" } })
    const brought = edge("", "step", { mapping: { timezone: "Mars/Utopia" } })
    const result = compileWorkflow([format("step", "date.parts", { input: "now" })], [brought], catalog)
    expect(Result.isFailure(result) && result.failure.map(({ code, field }) => [code, field])).toEqual([
      ["FORMATTER_CONFIG_INVALID", "mapping.timezone"]
    ])
  })

  it.each([
    ["an unknown operation", format("step", "text.shout", {}), "ACTION_UNKNOWN action"],
    [
      "an unknown option",
      format("step", "text.trim", { input: "a" }, { formatter: { options: { loud: true } } }),
      "FORMATTER_CONFIG_INVALID config.formatter.options.loud"
    ],
    [
      "an invalid choice of an option",
      format("step", "text.trim", { input: "a" }, { formatter: { options: { side: "middle" } } }),
      "FORMATTER_CONFIG_INVALID config.formatter.options.side"
    ],
    [
      "an unknown version",
      format("step", "text.trim", { input: "a" }, { formatter: { engine_version: "9.0.0" } }),
      "FORMATTER_CONFIG_INVALID config.formatter.engine_version"
    ],
    [
      "an invalid pattern",
      format("step", "text.extract_pattern", { input: "{{trigger.body.a}}", pattern: "(" }),
      "FORMATTER_CONFIG_INVALID invocation_inputs.pattern"
    ],
    [
      "an unknown time zone",
      format("step", "date.parts", { input: "{{trigger.body.a}}", timezone: "Mars/Utopia" }),
      "FORMATTER_CONFIG_INVALID invocation_inputs.timezone"
    ],
    [
      "an unknown currency",
      format("step", "number.currency", { input: "{{trigger.body.a}}", currency: "ZZZ" }),
      "FORMATTER_CONFIG_INVALID invocation_inputs.currency"
    ],
    [
      "an invalid formula",
      format("step", "number.formula", { formula: "{{trigger.body.a}} +" }),
      "FORMATTER_CONFIG_INVALID invocation_inputs.formula"
    ],
    [
      "an unknown function in a formula",
      format("step", "number.formula", { formula: "REPT({{trigger.body.a}}, 3)" }),
      "FORMATTER_CONFIG_INVALID invocation_inputs.formula"
    ],
    ["an unknown input", format("step", "text.trim", { inptu: "a" }), "STEP_CONFIG_INVALID invocation_inputs.inptu"]
  ])("A formatter step with %s is refused", (_, step, issue) => {
    expect(issuesOf(step)).toEqual([issue])
  })
})
