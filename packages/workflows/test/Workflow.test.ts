import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { type IssueCode, issueCodes } from "../src/Issue.ts"
import { compileWorkflow, compiling } from "../src/Workflow.ts"
import { branch, call, catalog, compiled, delay, echo, edge, filter, send } from "./Graphs.ts"

type Written = ReadonlyArray<unknown>

const issuesOf = (steps: Written, edges: Written) => {
  const result = compileWorkflow(steps, edges, catalog)
  return Result.isFailure(result) ? result.failure : []
}

/** One step, led to by the trigger. */
const alone = (step: { readonly [member: string]: unknown }): readonly [Written, Written] => [
  [step],
  [edge("", step["id"] as string)]
]

const paths = (...keys: ReadonlyArray<string>) =>
  keys.map((key) => ({ key, rule: "conditions", conditions: { body: {} } }))

describe("Errors of a graph", () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) })
  const table: ReadonlyArray<
    readonly [
      name: string,
      graph: readonly [Written, Written],
      code: IssueCode,
      where: string | null,
      field: string | null
    ]
  > = [
    [
      "too many steps",
      [Array.from({ length: 101 }, (_, i) => echo(`step_${i}`)), []],
      "STEP_LIMIT_EXCEEDED",
      null,
      null
    ],
    ["too many edges", [[], Array.from({ length: 251 }, () => edge("", "step"))], "EDGE_LIMIT_EXCEEDED", null, null],
    ["two steps with one id", [[echo("step"), echo("step")], [edge("", "step")]], "DUPLICATE_STEP_ID", "step", "id"],
    [
      "two edges with one id",
      [
        [echo("one1"), echo("two2")],
        [edge("", "one1", { id: "edge" }), edge("", "two2", { id: "edge" })]
      ],
      "DUPLICATE_EDGE_ID",
      "edge",
      "id"
    ],
    [
      "two steps with one id and without a kind",
      [[{ id: "step", kind: "loop" }, echo("step")], [edge("", "step")]],
      "DUPLICATE_STEP_ID",
      "step",
      "id"
    ],
    [
      "an unknown target port",
      [[echo("step")], [edge("", "step", { target_port: "side" })]],
      "PORT_UNKNOWN",
      "e_00",
      "target_port"
    ],
    ["a repeated edge", [[echo("step")], [edge("", "step"), edge("", "step")]], "DUPLICATE_EDGE", "e_01", null],
    ["an edge from nowhere", [[echo("step")], [edge("none", "step")]], "EDGE_SOURCE_UNKNOWN", "e_00", "source_step_id"],
    [
      "an edge from the trigger that names a step",
      [[echo("step")], [edge("", "step", { source_step_id: "step" })]],
      "EDGE_SOURCE_UNKNOWN",
      "e_00",
      "source_step_id"
    ],
    [
      "an edge to nowhere",
      [[echo("step")], [edge("", "step"), edge("step", "none")]],
      "EDGE_TARGET_UNKNOWN",
      "e_01",
      "target_step_id"
    ],
    [
      "an invalid edge",
      [[echo("step")], [{ id: "edge", source_type: "wire", target_step_id: "step" }]],
      "EDGE_INVALID",
      "edge",
      "source_type"
    ],
    [
      "an unknown member of an edge",
      [[echo("step")], [edge("", "step", { colour: "red" })]],
      "EDGE_INVALID",
      "e_00",
      "colour"
    ],
    [
      "an unknown source port",
      [
        [echo("one1"), echo("two2")],
        [edge("", "one1"), edge("one1", "two2", { source_port: "matched" })]
      ],
      "PORT_UNKNOWN",
      "e_01",
      "source_port"
    ],
    ["an edge that is not an object", [[echo("step")], [edge("", "step"), "step"]], "EDGE_INVALID", "e_01", ""],
    [
      "an edge with an unknown port and a condition on an unknown step",
      [
        [echo("one1"), echo("two2")],
        [
          edge("", "one1"),
          edge("one1", "two2", { source_port: "side", condition: { steps: { gone: { output: { a: 1 } } } } })
        ]
      ],
      "TEMPLATE_REFERENCE_UNKNOWN",
      "e_01",
      "condition.steps.gone"
    ],
    [
      "a branch's edge without a port",
      [
        [branch("fork", paths("a")), echo("step")],
        [edge("", "fork"), edge("fork", "step")]
      ],
      "PORT_UNKNOWN",
      "e_01",
      "source_port"
    ],
    [
      "an error port of a step that cannot fail",
      [
        [filter("only", { body: {} }), echo("step")],
        [edge("", "only"), edge("only", "step", { source_port: "error" })]
      ],
      "PORT_UNKNOWN",
      "e_01",
      "source_port"
    ],
    ["a step that nothing leads to", [[echo("step")], []], "STEP_WITHOUT_INPUT", "step", null],
    [
      "a cycle",
      [
        [echo("one1"), echo("two2")],
        [edge("", "one1"), edge("one1", "two2"), edge("two2", "one1")]
      ],
      "GRAPH_CYCLE",
      null,
      null
    ],
    [
      "a step that leads to itself",
      [[echo("one1")], [edge("", "one1"), edge("one1", "one1")]],
      "GRAPH_CYCLE",
      null,
      null
    ],
    [
      "a cycle that nothing leads to",
      [
        [echo("one1"), echo("two2")],
        [edge("one1", "two2"), edge("two2", "one1")]
      ],
      "STEP_UNREACHABLE",
      "one1",
      null
    ],
    ["an invalid step", [[7], []], "STEP_INVALID", null, "steps[0]"],
    ["an invalid id", alone({ ...echo("a b c") }), "STEP_INVALID", "a b c", "id"],
    ["an unknown member of a step", alone({ ...echo("step"), colour: "red" }), "STEP_INVALID", "step", "colour"],
    ["an unknown step kind", alone({ id: "step", kind: "loop" }), "STEP_KIND_UNKNOWN", "step", "kind"],
    [
      "an unknown member of config",
      alone(echo("step", null, { colour: "red" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.colour"
    ],
    [
      "a setting of another step kind",
      alone({ id: "step", kind: "filter", config: { conditions: { body: {} }, retry: { interval: 1_000, count: 1 } } }),
      "RETRY_INVALID",
      "step",
      "config.retry"
    ],
    [
      "a retry of a step without side effects",
      alone(echo("step", null, { retry: { interval: 1_000, count: 1 } })),
      "RETRY_INVALID",
      "step",
      "config.retry"
    ],
    [
      "more elements at once than may be",
      alone(send("step", { for_each: "{{trigger.body}}", concurrency: 21 })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.concurrency"
    ],
    [
      "elements at once without a list",
      alone(send("step", { concurrency: 2 })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.concurrency"
    ],
    [
      "elements at once of a step that stays within the process",
      alone(echo("step", null, { for_each: "{{trigger.body}}", concurrency: 2 })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.concurrency"
    ],
    [
      "too many retries",
      alone(send("step", { retry: { interval: 1_000, count: 11 } })),
      "RETRY_INVALID",
      "step",
      "config.retry.count"
    ],
    [
      "an invalid retry status",
      alone(send("step", { retry: { interval: 1_000, count: 1, response_status_codes: ["5xx"] } })),
      "RETRY_INVALID",
      "step",
      "config.retry.response_status_codes[0]"
    ],
    [
      "a timeout that is too long",
      alone(send("step", { timeout_ms: 121_000 })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.timeout_ms"
    ],
    [
      "on_error branch without an edge",
      alone(send("step", { on_error: "branch" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.on_error"
    ],
    [
      "an error edge that is never taken",
      [
        [send("step"), echo("next")],
        [edge("", "step"), edge("step", "next", { source_port: "error" })]
      ],
      "STEP_CONFIG_INVALID",
      "step",
      "config.on_error"
    ],
    [
      "an invalid condition",
      alone(filter("step", { body: { a: { $foo: 1 } } })),
      "CONDITION_INVALID",
      "step",
      "config.conditions.body.a.$foo"
    ],
    ["a condition nested too deep", alone(filter("step", { trigger: deep(12) })), "CONDITION_INVALID", "step", null],
    ["a condition that is a list", alone(filter("step", [1])), "CONDITION_INVALID", "step", "config.conditions"],
    [
      "an invalid condition of an edge",
      [[echo("step")], [edge("", "step", { condition: { $nope: 1 } })]],
      "CONDITION_INVALID",
      "e_00",
      "condition.$nope"
    ],
    [
      "a filter without conditions",
      alone({ id: "step", kind: "filter" }),
      "RESOURCE_REQUIRED",
      "step",
      "config.conditions"
    ],
    [
      "a filter with conditions and a resource",
      alone({ id: "step", kind: "filter", resource_id: "flt_1", config: { conditions: {} } }),
      "STEP_CONFIG_INVALID",
      "step",
      "config.conditions"
    ],
    [
      "a destination step without a destination",
      alone({ id: "step", kind: "destination" }),
      "RESOURCE_REQUIRED",
      "step",
      "resource_id"
    ],
    [
      "a destination step that names a source",
      alone({ id: "step", kind: "destination", resource_id: "src_1" }),
      "RESOURCE_KIND_MISMATCH",
      "step",
      "resource_id"
    ],
    [
      "a delay with a resource",
      alone({ ...delay("step", { mode: "for", amount: 1, unit: "days" }), resource_id: "des_1" }),
      "RESOURCE_KIND_MISMATCH",
      "step",
      "resource_id"
    ],
    [
      "an action step without an action",
      alone({ id: "step", kind: "action" }),
      "RESOURCE_REQUIRED",
      "step",
      "resource_id"
    ],
    [
      "an unknown action",
      alone({ id: "step", kind: "action", action: { provider_key: "test", action_key: "none" } }),
      "ACTION_UNKNOWN",
      "step",
      "action"
    ],
    [
      "a saved action and an inline one",
      alone({ ...call("step"), resource_id: "act_1" }),
      "STEP_CONFIG_INVALID",
      "step",
      "action"
    ],
    [
      "formatter settings of another action",
      alone({
        id: "step",
        kind: "action",
        action: { provider_key: "test", action_key: "named" },
        config: { formatter: { engine_version: "1" } }
      }),
      "FORMATTER_CONFIG_INVALID",
      "step",
      "config.formatter"
    ],
    [
      "an input that the action does not take",
      alone({
        id: "step",
        kind: "action",
        action: { provider_key: "test", action_key: "named" },
        invocation_inputs: { strange: 1 }
      }),
      "STEP_CONFIG_INVALID",
      "step",
      "invocation_inputs.strange"
    ],
    [
      "an input of a step without inputs",
      alone({ ...filter("step", { body: {} }), invocation_inputs: { body: 1 } }),
      "STEP_CONFIG_INVALID",
      "step",
      "invocation_inputs.body"
    ],
    [
      "an edge that maps what the target does not take",
      [[send("step")], [edge("", "step", { mapping: { strange: 1 } })]],
      "STEP_CONFIG_INVALID",
      "e_00",
      "mapping.strange"
    ],
    [
      "an invalid template",
      alone(echo("step", { a: ["{{trigger.}}"] })),
      "TEMPLATE_INVALID",
      "step",
      "invocation_inputs.a[0]"
    ],
    [
      "a template that names an unknown step",
      alone(echo("step", { a: "{{steps.none.output}}" })),
      "TEMPLATE_REFERENCE_UNKNOWN",
      "step",
      "invocation_inputs.a"
    ],
    [
      "a template that names its own step",
      alone(echo("step", { a: "{{steps.step.output}}" })),
      "TEMPLATE_REFERENCE_NOT_UPSTREAM",
      "step",
      "invocation_inputs.a"
    ],
    [
      "a template that names a later step",
      [
        [echo("one1", { a: "{{steps.two2.output}}" }), echo("two2")],
        [edge("", "one1"), edge("one1", "two2")]
      ],
      "TEMPLATE_REFERENCE_NOT_UPSTREAM",
      "one1",
      "invocation_inputs.a"
    ],
    [
      "a template that names a parallel step",
      [
        [echo("one1", { a: "{{steps.two2.output}}" }), echo("two2")],
        [edge("", "one1"), edge("", "two2")]
      ],
      "TEMPLATE_REFERENCE_NOT_UPSTREAM",
      "one1",
      "invocation_inputs.a"
    ],
    [
      "two paths with one key",
      alone(branch("step", paths("a", "a"))),
      "PATH_KEY_DUPLICATE",
      "step",
      "config.paths[1].key"
    ],
    [
      "two fallbacks",
      alone(
        branch("step", [
          { key: "a", rule: "fallback" },
          { key: "b", rule: "fallback" }
        ])
      ),
      "PATH_FALLBACK_MULTIPLE",
      "step",
      "config.paths"
    ],
    [
      "too many paths",
      alone(branch("step", paths(...Array.from("abcdefghijk")))),
      "PATH_LIMIT_EXCEEDED",
      "step",
      "config.paths"
    ],
    [
      "a fallback that is never taken",
      alone(
        branch(
          "step",
          [
            { key: "a", rule: "always" },
            { key: "b", rule: "fallback" }
          ],
          "first"
        )
      ),
      "STEP_CONFIG_INVALID",
      "step",
      "config.paths"
    ],
    [
      "a path without conditions",
      alone(branch("step", [{ key: "a", rule: "conditions" }])),
      "CONDITION_INVALID",
      "step",
      "config.paths[0].conditions"
    ],
    [
      "conditions on a path with the rule always",
      alone(branch("step", [{ key: "a", rule: "always", conditions: {} }])),
      "STEP_CONFIG_INVALID",
      "step",
      "config.paths[0].conditions"
    ],
    [
      "a delay with two modes",
      alone(delay("step", { mode: "for", amount: 1, unit: "days", until: "2026-01-01" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.until"
    ],
    [
      "a delay that is too long",
      alone(delay("step", { mode: "for", amount: 5, unit: "weeks" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.amount"
    ],
    [
      "a delay until an invalid time",
      alone(delay("step", { mode: "until", until: "tomorrow" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.until"
    ],
    [
      "a delay in an unknown time zone",
      alone(delay("step", { mode: "until", until: "2026-01-01", timezone: "Mars/Olympus" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.timezone"
    ],
    [
      "a for_each that is not a list",
      alone(call("step", { for_each: "hello" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.for_each"
    ],
    [
      "an item without for_each",
      alone(echo("step", { a: "{{item}}" })),
      "TEMPLATE_INVALID",
      "step",
      "invocation_inputs.a"
    ],
    [
      "an item inside for_each",
      alone(call("step", { for_each: "{{item}}" })),
      "TEMPLATE_INVALID",
      "step",
      "config.for_each"
    ],
    [
      "a condition on an unknown step",
      alone(filter("step", { $or: [{ steps: { nope: { status: "failed" } } }] })),
      "TEMPLATE_REFERENCE_UNKNOWN",
      "step",
      "config.conditions.$or[0].steps.nope"
    ],
    [
      "a delay whose amount is not a number",
      alone(delay("step", { mode: "for", amount: "abc", unit: "days" })),
      "STEP_CONFIG_INVALID",
      "step",
      "config.amount"
    ],
    [
      "a config with too many members",
      alone(echo("step", null, Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`m${i}`, 1])))),
      "STEP_CONFIG_INVALID",
      "step",
      "config"
    ],
    [
      "too many template tokens",
      alone(echo("step", Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`m${i}`, "{{run}}".repeat(100)])))),
      "TEMPLATE_INVALID",
      "step",
      "invocation_inputs"
    ]
  ]

  it.each(table)("A graph with %s is refused", (_, [steps, edges], code, where, field) => {
    const issues = issuesOf(steps, edges)
    expect(issues.map(({ code }) => code)).toContain(code)
    const issue = issues.find((one) => one.code === code)!
    if (where !== null) expect(issue.step_id ?? issue.edge_id).toBe(where)
    if (field !== null) expect(issue.field).toBe(field)
    expect(issue.message).not.toBe("")
  })

  it("The table of invalid graphs has a row for each code that needs only the graph", () => {
    const seen = new Set(table.map(([, , code]) => code))
    expect(issueCodes.filter((code) => !seen.has(code))).toEqual(["STEP_KIND_CHANGED", "RESOURCE_NOT_FOUND"])
  })

  it("All errors of a graph are reported at once, up to a limit", () => {
    const issues = issuesOf(
      [echo("one1", { a: "{{x}}" }), filter("two2", 7), { id: "three", kind: "loop" }],
      [edge("", "one1"), edge("one1", "two2")]
    )
    expect(issues.map(({ code, step_id }) => `${code} ${step_id}`)).toEqual([
      "STEP_KIND_UNKNOWN three",
      "STEP_WITHOUT_INPUT three",
      "TEMPLATE_INVALID one1",
      "CONDITION_INVALID two2"
    ])
    expect(
      issuesOf(
        [echo("one1", { a: "{{x}}" }), filter("two2", 7)],
        [edge("", "one1"), edge("one1", "two2", { condition: 7 })]
      ).map(({ code, edge_id, step_id }) => `${code} ${step_id ?? edge_id}`)
    ).toEqual(["TEMPLATE_INVALID one1", "CONDITION_INVALID two2", "CONDITION_INVALID e_01"])
    // Circles, edges that are none and settings beside each other; nothing follows from what is missing.
    const together = issuesOf(
      [
        echo("one1", { a: "{{steps.two2.output}} {{steps.none.output}}" }),
        echo("two2"),
        delay("wait", { mode: "for", amount: 1, unit: "months" }),
        send("sent", { on_error: "branch", timeout_ms: 1 }),
        { id: "odd_one", kind: "loop" }
      ],
      [
        edge("", "one1"),
        edge("one1", "two2"),
        edge("two2", "one1"),
        edge("", "wait"),
        edge("wait", "sent", { source_port: "out" }),
        edge("sent", "odd_one"),
        edge("odd_one", "none")
      ]
    ).map(({ code, edge_id, field, step_id }) => `${code} ${step_id ?? edge_id} ${field}`)
    expect(together).toEqual([
      "STEP_KIND_UNKNOWN odd_one kind",
      "EDGE_TARGET_UNKNOWN e_06 target_step_id",
      "GRAPH_CYCLE null null",
      "STEP_CONFIG_INVALID wait config.unit",
      "STEP_CONFIG_INVALID sent config.timeout_ms",
      "TEMPLATE_REFERENCE_UNKNOWN one1 invocation_inputs.a"
    ])
    const junk = Array.from({ length: 248 }, () => ({ a: 1, b: 2 }))
    const many = issuesOf([echo("step")], [edge("", "step"), ...junk, edge("nope", "step", { source_port: "out" })])
    expect(many).toHaveLength(200)
  })

  it("A cycle is reported with all its steps, however long it is", () => {
    const ids = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(60, "s"))
    const [issue] = issuesOf(
      ids.map((id) => echo(id)),
      ids.map((id, i) => edge(ids.at(i - 1)!, id))
    )
    expect(issue).toMatchObject({ code: "GRAPH_CYCLE", step_id: null, edge_id: null, field: null })
    const { step_ids } = issue!.data!
    const first = step_ids.indexOf(ids[0]!)
    expect([...step_ids.slice(first), ...step_ids.slice(0, first)]).toEqual(ids)
  })

  it("A step id that is too long is one error, and its edges add none", () => {
    const id = "x".repeat(97)
    expect(issuesOf(...alone(echo(id)))).toMatchObject([{ code: "STEP_INVALID", step_id: id.slice(0, 96) }])
  })

  it.prop(
    "No written graph makes the compiler throw",
    [Schema.Array(Schema.Json), Schema.Array(Schema.Json)],
    ([steps, edges]) => {
      for (const issue of issuesOf(steps, edges)) expect(issueCodes).toContain(issue.code)
    }
  )
})

describe("Valid graph", () => {
  it("A valid graph is returned with its defaults", () => {
    const { edges, steps } = compiled(
      [{ id: "fork", kind: "paths", config: { paths: paths("a") } }, echo("step")],
      [edge("", "fork"), edge("fork", "step", { source_port: "path_a" })]
    )
    expect(steps[0]).toEqual({
      id: "fork",
      kind: "branch",
      name: "",
      resource_id: null,
      action: null,
      action_revision_id: null,
      invocation_inputs: null,
      config: { paths: paths("a") },
      position: { x: 0, y: 0 }
    })
    expect(edges[1]).toEqual({
      id: "e_01",
      source_type: "step",
      source_step_id: "fork",
      source_port: "path_a",
      target_step_id: "step",
      target_port: "in",
      mapping: {},
      condition: null,
      position: 1
    })
  })

  it("An edge without an id gets an id that no other edge has", () => {
    const { edges } = compiled(
      [echo("one1"), echo("two2"), echo("three")],
      [edge("", "one1"), edge("", "two2"), edge("", "three", { id: "e_00" })]
    )
    expect(edges.map(({ id }) => id)).toEqual(["e_03", "e_01", "e_00"])
  })

  it("A graph is compiled in parts, at least one for each step", () => {
    const steps = ["one1", "two2", "three"].map((id) => echo(id))
    const parts = partsOf(steps, [edge("", "one1"), edge("", "two2"), edge("", "three")])
    expect(parts).toBeGreaterThanOrEqual(steps.length)
  })

  it("A graph with thousands of long templates or with many patterns is compiled in more parts", () => {
    const long = Array.from({ length: 4_990 }, () => `{{trigger.body${".a".repeat(60)}}}`)
    expect(partsOf([echo("only", { a: long })], [edge("", "only")])).toBeGreaterThan(40)
    expect(partsOf([echo("only")], [edge("", "only", { mapping: { a: long } })])).toBeGreaterThan(40)
    const patterns = { trigger: { body: { $or: Array.from({ length: 60 }, () => ({ a: { $regex: "a+" } })) } } }
    expect(partsOf([filter("only", patterns)], [edge("", "only")])).toBeGreaterThan(60)
    expect(partsOf([echo("only")], [edge("", "only", { condition: patterns })])).toBeGreaterThan(60)
  })

  it("A compiled graph compiles to the same graph again", () => {
    const first = compiled([echo("one1"), send("two2")], [edge("", "one1"), edge("one1", "two2")])
    const again = Result.getOrThrow(compileWorkflow(first.steps, first.edges, catalog))
    expect(again.steps).toEqual(first.steps)
    expect(again.edges).toEqual(first.edges)
  })

  it("Steps are planned after their ancestors, and otherwise in the order in which they were written", () => {
    const { plan } = compiled(
      [echo("last"), echo("side"), echo("first"), echo("mid1")],
      [edge("", "first"), edge("", "side"), edge("first", "mid1"), edge("mid1", "last"), edge("side", "last")]
    )
    expect(plan.map(({ step }) => step.id)).toEqual(["side", "first", "mid1", "last"])
    expect(plan[3]!.ancestors).toEqual(new Set([0, 1, 2]))
  })
})

const partsOf = (steps: ReadonlyArray<unknown>, edges: ReadonlyArray<unknown>): number => {
  const parts = compiling(steps, edges, catalog)
  for (let count = 0; ; count++) {
    const part = parts.next()
    if (part.done !== true) continue
    expect(Result.isSuccess(part.value)).toBe(true)
    return count
  }
}

describe("Limits of a definition's cost", () => {
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))
  const patterns = (count: number) => ({
    trigger: { body: { $or: Array.from({ length: count }, (_, i) => ({ x: { $regex: `${i}`.padEnd(500, "a") } })) } }
  })
  const refused = (steps: ReadonlyArray<unknown>, edges: ReadonlyArray<unknown>) => {
    const result = compileWorkflow(steps, edges, catalog)
    return Result.isFailure(result) ? result.failure : []
  }
  const line = (ids: ReadonlyArray<string>) => ids.map((id, i) => edge(ids[i - 1] ?? "", id))

  it("A definition with too many values in one step or edge is refused", () => {
    expect(refused([echo("only", { a: members(9_950) })], [edge("", "only")])).toEqual([])
    const many = [echo("only", { a: members(10_000) })]
    expect(refused(many, [edge("", "only")])).toMatchObject([{ code: "STEP_INVALID", step_id: "only" }])
    const list = [echo("only", { a: Array.from({ length: 10_000 }, () => 1) })]
    expect(refused(list, [edge("", "only")])).toMatchObject([{ code: "STEP_INVALID", step_id: "only" }])
    const mapped = [edge("", "only", { id: "mapped", mapping: { a: members(10_000) } })]
    expect(refused([echo("only")], mapped)).toMatchObject([
      { code: "EDGE_INVALID", edge_id: "mapped", message: expect.stringContaining("more than 10000 values") }
    ])
  })

  it("A definition with too many values in total is refused", () => {
    const ids = ["one1", "two2", "three"]
    expect(
      refused(
        ids.slice(0, 2).map((id) => echo(id, { a: members(9_900) })),
        line(ids.slice(0, 2))
      )
    ).toEqual([])
    expect(
      refused(
        ids.map((id) => echo(id, { a: members(6_700) })),
        line(ids)
      )
    ).toMatchObject([{ code: "STEP_LIMIT_EXCEEDED", message: expect.stringContaining("more than 20000 values") }])
  })

  it("A definition whose patterns cost too much to compile, alone or together, is refused with one error", () => {
    const costly = { trigger: { body: { x: { $regex: "(?i)[b-\\x{10ffff}][b-\\x{10ffff}][b-\\x{10ffff}]" } } } }
    expect(refused([filter("only", costly)], [edge("", "only")])).toMatchObject([
      { code: "CONDITION_INVALID", field: "config.conditions.trigger.body.x.$regex" }
    ])
    const ids = Array.from({ length: 25 }, (_, i) => `step${i}`)
    const all = (count: number) =>
      refused(
        ids.slice(0, count).map((id) => echo(id)),
        ids.slice(0, count).map((id) => edge("", id, { condition: patterns(10) }))
      )
    expect(all(18)).toEqual([])
    expect(all(25)).toMatchObject([
      { code: "CONDITION_INVALID", message: expect.stringContaining("too long to compile, all together") }
    ])
    const paths = ids.slice(0, 10).map((key) => ({ key, rule: "conditions", conditions: patterns(30) }))
    expect(refused([branch("only", paths)], [edge("", "only")])).toMatchObject([{ code: "CONDITION_INVALID" }])
  })

  it("Errors of a definition are short, whatever names it contains", () => {
    const long = "x".repeat(200_000)
    const issues = refused([send("only", { [long]: 1, retry: { [long]: 1 } })], [edge("", "only", { [long]: 1 })])
    expect(issues.length).toBeGreaterThan(0)
    expect(JSON.stringify(issues).length).toBeLessThan(5_000)
  })

  it("A stored definition with too many values still compiles", () => {
    const parts = compiling([echo("only", { a: members(12_000) })], [edge("", "only")], catalog)
    let part = parts.next()
    while (part.done !== true) part = parts.next()
    expect(Result.isSuccess(part.value)).toBe(true)
  })

  it("A stored definition with patterns too costly for a new one still compiles", () => {
    const regex = `((${"x".repeat(20)}){9}){9}`
    const costly = { trigger: { body: { $or: Array.from({ length: 64 }, () => ({ a: { $regex: regex } })) } } }
    const graph = [[filter("only", costly)], [edge("", "only")]] as const
    expect(refused(...graph)).toMatchObject([{ code: "CONDITION_INVALID", field: expect.stringMatching(/conditions/) }])
    expect(Result.isSuccess(compileWorkflow(...graph, { ...catalog, isStored: true }))).toBe(true)
  })
})
