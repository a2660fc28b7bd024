import { Result } from "effect"
import { expect, it } from "vitest"
import { compileWorkflow } from "../src/Workflow.ts"
import { branch, catalog, delay, echo, edge, filter, send } from "./Graphs.ts"

type Written = Readonly<Record<string, unknown>>

const length = (config: Written = {}): Written => ({
  id: "before",
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.length" },
  invocation_inputs: { input: "text" },
  config
})

/** What is warned of when `step` comes behind `before`, by an edge with more than its ends. */
const warningsOf = (before: Written, step: Written, more: Written = {}, isStored = false) => {
  const edges = [edge("", "before"), edge("before", step["id"] as string, more)]
  const { warnings } = Result.getOrThrow(compileWorkflow([before, step], edges, { ...catalog, isStored }))
  return warnings.map(({ code, message, path }) => {
    expect(code).toBe("OUTPUT_MEMBER_UNKNOWN")
    return `${path}: ${message}`
  })
}

const has = "of the step before, the output has no"

it("A template with a member that an output lacks gives a warning with the nearest name", () => {
  expect(warningsOf(length(), echo("step", { a: [{ b: "{{steps.before.output.reslut}}" }] }))).toEqual([
    `steps[1].invocation_inputs.a[0].b: ${has} reslut: there are result; did you mean result?`
  ])
  expect(warningsOf(length(), echo("step", { a: 'x {{steps.before.output.size ?? "0"}}' }))).toEqual([
    `steps[1].invocation_inputs.a: ${has} size: there are result`
  ])
  expect(warningsOf(length(), echo("step"), { mapping: { a: "{{steps.before.output.reslut}}" } })).toEqual([
    `edges[1].mapping.a: ${has} reslut: there are result; did you mean result?`
  ])
  expect(warningsOf(length(), echo("step", null, { for_each: "{{steps.before.output.items}}" }))).toEqual([
    `steps[1].config.for_each: ${has} items: there are result`
  ])
})

it("A nested condition or reference with a member that an output lacks gives a warning", () => {
  const reslut = `${has} reslut: there are result; did you mean result?`
  for (const [condition, at] of [
    [{ steps: { before: { output: { reslut: { $gt: 1 } } } } }, "steps.before.output.reslut"],
    [{ $or: [{ "steps.before.output.reslut.deeper": 1 }] }, "$or[0].steps.before.output.reslut.deeper"],
    [{ steps: { "before.output": { reslut: { deeper: { deepest: 1 } } } } }, "steps.before.output.reslut"],
    [{ trigger: { body: { id: { $ref: "steps.before.output.reslut" } } } }, "trigger.body.id.$ref"]
  ] as const) {
    expect(warningsOf(length(), filter("step", condition))).toEqual([`steps[1].config.conditions.${at}: ${reslut}`])
    expect(warningsOf(length(), echo("step"), { condition })).toEqual([`edges[1].condition.${at}: ${reslut}`])
  }
})

it("Members that an output has or may have give no warning", () => {
  const named: Written = {
    id: "before",
    kind: "action",
    action: { provider_key: "formatter", action_key: "text.extract_pattern" },
    invocation_inputs: { input: "A-17", pattern: "(?P<number>[0-9]+)" }
  }
  for (const name of ["matched", "groups.1", "named.number", "named.other"]) {
    expect(warningsOf(named, echo("step", { a: `{{steps.before.output.${name}}}` }))).toEqual([])
  }
  expect(warningsOf(echo("before", { a: 1 }), echo("step", { a: "{{steps.before.output.b.c}}" }))).toEqual([])
  expect(warningsOf(length(), echo("step", { a: "{{steps.before.output}} {{steps.before.error.code}}" }))).toEqual([])
  expect(warningsOf(length(), filter("step", { steps: { before: { output: { result: { $gt: 1 } } } } }))).toEqual([])
  expect(warningsOf(length(), echo("step", { a: "{{steps.before.output.reslut}}" }), {}, true)).toEqual([])
})

it("The output of a step with for_each has items with the members of a single output", () => {
  const each = length({ for_each: "{{trigger.body}}" })
  expect(
    warningsOf(each, echo("step", { a: "{{steps.before.output.items[].result}} {{steps.before.output.count}}" }))
  ).toEqual([])
  expect(warningsOf(each, echo("step", { a: "{{steps.before.output.result}}" }))).toEqual([
    `steps[1].invocation_inputs.a: ${has} result: there are items, count`
  ])
  expect(warningsOf(each, echo("step", { a: "{{steps.before.output.items[0].reslut}}" }))).toEqual([
    "steps[1].invocation_inputs.a: of the step before, the output.items[] has no reslut: there are result; did you mean result?"
  ])
})

it("Every step kind other than action declares the members of its output", () => {
  const paths = [{ key: "a", rule: "always" }]
  for (const [before, port, member, known] of [
    [branch("before", paths), "path_a", "matchd", "matched, fallback; did you mean matched?"],
    [delay("before", { mode: "for", amount: 1, unit: "hours" }), "out", "released", "scheduled_for, released_at"],
    [filter("before", { body: { id: 1 } }), "matched", "matchd", "matched; did you mean matched?"],
    [send("before"), "out", "bdoy", "status, headers, body, duration_ms; did you mean body?"]
  ] as const) {
    const step = echo("step", { a: `{{steps.before.output.${member}}}` })
    expect(warningsOf(before, step, { source_port: port })[0]).toContain(`${has} ${member}: there are ${known}`)
  }
  const transformation = { id: "before", kind: "transformation", resource_id: "trs_1" }
  expect(warningsOf(transformation, echo("step", { a: "{{steps.before.output.header}}" }))).toHaveLength(1)
})

it("A member that the body of the source's requests lacks gives a warning in templates, conditions and references", () => {
  const body = {
    type: "object",
    properties: { title: {}, feed: { type: "object", properties: { url: {} } }, links: { type: "array" } }
  }
  const warned = (step: Written, more: Written = {}) => {
    const compiled = compileWorkflow([step], [edge("", step["id"] as string, more)], { ...catalog, body })
    return Result.getOrThrow(compiled).warnings.map(({ code, message, path }) => {
      expect(code).toBe("TRIGGER_MEMBER_UNKNOWN")
      return `${path}: ${message}`
    })
  }
  const titel = "of the source, the body has no titel: there are title, feed, links; did you mean title?"
  expect(warned(echo("step", { a: "{{trigger.body.titel}}" }))).toEqual([`steps[0].invocation_inputs.a: ${titel}`])
  expect(warned(echo("step", { a: "{{trigger.body.feed.uri}}" }))).toEqual([
    "steps[0].invocation_inputs.a: of the source, the body.feed has no uri: there are url; did you mean url?"
  ])
  expect(warned(echo("step"), { mapping: { a: "{{trigger.body.titel}}" } })).toEqual([`edges[0].mapping.a: ${titel}`])
  for (const [condition, at] of [
    [{ trigger: { body: { titel: "a" } } }, "trigger.body.titel"],
    [{ "trigger.body.titel.deeper": "a" }, "trigger.body.titel.deeper"],
    [{ trigger: { body: { title: { $ref: "trigger.body.titel" } } } }, "trigger.body.title.$ref"]
  ] as const) {
    expect(warned(filter("step", condition))).toEqual([`steps[0].config.conditions.${at}: ${titel}`])
  }
  const known = "{{trigger.body}} {{trigger.body.feed.url}} {{trigger.body.links[0].any}} {{trigger.headers.any}}"
  expect(warned(echo("step", { a: known }))).toEqual([])
  expect(warned(filter("step", { trigger: { body: { title: { $eq: "a" } }, headers: { any: "a" } } }))).toEqual([])
  expect(warningsOf(echo("before"), echo("step", { a: "{{trigger.body.titel}}" }))).toEqual([])
})

it("At most 50 warnings are returned, and none of them is long", () => {
  const inputs = Object.fromEntries(
    Array.from({ length: 99 }, (_, i) => [`${i}${"a".repeat(400)}`, `{{steps.before.output.x${"b".repeat(900)}}}`])
  )
  const warnings = warningsOf(length(), echo("step", inputs))
  expect(warnings).toHaveLength(50)
  expect(Math.max(...warnings.map((one) => one.length))).toBeLessThan(900)
})
