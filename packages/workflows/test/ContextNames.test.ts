import { Result } from "effect"
import { expect, it } from "vitest"
import { compileWorkflow } from "../src/Workflow.ts"
import type { Outcome } from "../src/StepKind.ts"
import { catalog, compiled, echo, edge, facts, filter } from "./Graphs.ts"

const issues = (condition: unknown, isStored = false) => {
  const steps = [echo("before"), filter("step", condition), echo("after")]
  const edges = [edge("", "before"), edge("before", "step"), edge("step", "after")]
  const result = compileWorkflow(steps, edges, { ...catalog, isStored })
  return Result.isFailure(result)
    ? result.failure.map(({ code, field, message }) => `${code} ${field}: ${message}`)
    : []
}

const of = (text: string) => {
  const steps = [echo("before"), echo("step", { text }), echo("after")]
  const edges = [edge("", "before"), edge("before", "step"), edge("step", "after")]
  const result = compileWorkflow(steps, edges, catalog)
  return Result.isFailure(result) ? result.failure.map(({ code, message }) => `${code}: ${message}`) : []
}

it("A condition on a name that a run does not have is refused with the nearest name", () => {
  expect(issues({ bdoy: { status: "paid" } })).toEqual([
    "CONDITION_INVALID config.conditions.bdoy: bdoy is nothing that a run has; did you mean body?"
  ])
  expect(issues({ trigger: { bdoy: { status: "paid" } } })).toEqual([
    "CONDITION_INVALID config.conditions.trigger.bdoy: trigger has no bdoy; did you mean body?"
  ])
  expect(issues({ $or: [{ "triger.body.status": "paid" }] })).toEqual([
    "CONDITION_INVALID config.conditions.$or[0].triger.body.status: triger is nothing that a run has; did you mean trigger?"
  ])
  expect(issues({ steps: { before: { outptu: { a: 1 } } } })).toEqual([
    "CONDITION_INVALID config.conditions.steps.before.outptu: outptu is nothing that a step leaves: there are status, output, error; did you mean output?"
  ])
})

it("A reference to a step that is unknown or not upstream is refused", () => {
  expect(issues({ trigger: { body: { id: { $ref: "steps.befroe.output.id" } } } })).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN config.conditions.trigger.body.id.$ref: names no step of this workflow; did you mean before?"
  ])
  expect(issues({ trigger: { body: { id: { $eq: { $ref: "steps.after.output.id" } } } } })).toEqual([
    "TEMPLATE_REFERENCE_NOT_UPSTREAM config.conditions.trigger.body.id.$eq.$ref: the step after does not lead to this one"
  ])
  expect(issues({ trigger: { body: { id: { $ref: "tirgger.body.id" } } } })).toEqual([
    "CONDITION_INVALID config.conditions.trigger.body.id.$ref: tirgger is nothing that a run has; did you mean trigger?"
  ])
  expect(issues({ "steps.gone.output.id": 1 })).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN config.conditions.steps.gone.output.id: names no step of this workflow"
  ])
})

it("A condition on an unknown item, member or step status is refused", () => {
  expect(issues({ item: { sku: "a" } })).toEqual([
    "CONDITION_INVALID config.conditions.item: item is nothing that a run has"
  ])
  expect(issues({ trigger: { body: { id: { $ref: "item.id" } } } })).toHaveLength(1)
  expect(issues({ steps: { before: { status: "suceeded" } } })).toEqual([
    "CONDITION_INVALID config.conditions.steps.before.status: suceeded is no status that can be read of a step: there are succeeded, failed; did you mean succeeded?"
  ])
  expect(issues({ "steps.before.status": { $eq: "skipped" } })).toHaveLength(1)
  expect(issues({ "steps.before.status.code": 1 })).toEqual([
    "CONDITION_INVALID config.conditions.steps.before.status.code: status is a single value: there is no code in it"
  ])
  expect(issues({ steps: { before: { error: { cod: "TIMEOUT" } } } })).toEqual([
    "CONDITION_INVALID config.conditions.steps.before.error.cod: error has no cod; did you mean code?"
  ])
  expect(issues({ trigger: { source: { nmae: "shop" } } })).toEqual([
    "CONDITION_INVALID config.conditions.trigger.source.nmae: trigger.source has no nmae; did you mean name?"
  ])
})

it("A short condition may reference the run, and is refused when the run has no such step", () => {
  expect(issues({ body: { id: { $ref: "steps.befor.output.id" } } })).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN config.conditions.body.id.$ref: names no step of this workflow; did you mean before?"
  ])
  expect(issues({ body: { id: { $eq: { $ref: "steps.after.output.id" } } } })).toHaveLength(1)
  expect(issues({ body: { id: { $ref: "trigger.headers.x-id" }, more: { $ref: "steps.before.output.id" } } })).toEqual(
    []
  )
  const body = { id: "1", own: "1", steps: { id: "1" } }
  const holds = (condition: unknown): unknown => {
    const [, step] = compiled(
      [echo("before", { id: "1" }), filter("step", condition)],
      [edge("", "before"), edge("before", "step")]
    ).plan
    const context = { ...facts(body), steps: { before: { status: "succeeded", output: { id: "1" }, error: null } } }
    const outcome = step!.evaluate!({ context, inputs: {}, time: { now: 0, clock: () => 0 } })
    return (outcome as Outcome & { kind: "succeeded" }).output
  }
  for (const reference of ["own", "steps.id", "trigger.body.own", "steps.before.output.id"]) {
    expect([reference, holds({ body: { id: { $ref: reference } } })]).toEqual([reference, { matched: true }])
  }
  expect(holds({ body: { id: { $ref: "steps.before.status" } } })).toEqual({ matched: false })
})

it("A template in a condition is refused, because conditions are not rendered", () => {
  expect(issues({ trigger: { body: { id: "{{steps.before.output.id}}" } } })).toEqual([
    `CONDITION_INVALID config.conditions.trigger.body.id: is a template, and conditions have none: compare with {"$ref": "trigger.body.…"}`
  ])
  expect(issues({ body: { id: { $in: ["a", "{{trigger.body.id}}"] } } })).toHaveLength(1)
  expect(issues({ body: { "{{trigger.body.name}}": 1 } })).toHaveLength(1)
})

it("Conditions and references that may hold are accepted, whatever is below a body or an output", () => {
  for (const condition of [
    { body: { bdoy: 1, a: { $ref: "b" } } },
    { trigger: { body: { bdoy: { $ref: "steps.before.output.x[0].y" } }, request_id: { $exist: true } } },
    { steps: { before: { error: { exist: false }, status: { neq: "failed" } } } },
    {
      trigger: { path: { startsWith: "/a" }, method: { in: ["GET"] } },
      steps: { before: { status: { $in: ["failed"] } } }
    },
    { steps: { before: { output: { outptu: 1 }, status: "succeeded" } }, run: { attempt: 1 }, "source.name": "shop" },
    { $not: { $and: [{ workflow: { version: { $gte: 2 } } }, { headers: { "x-a": "{" } }] } }
  ]) {
    expect(issues(condition)).toEqual([])
  }
})

it("Stored definitions with unknown names in conditions stay valid", () => {
  expect(issues({ bdoy: { id: "{{trigger.body.id}}" } }, true)).toEqual([])
})

it("A template with names that a run does not have is refused with the nearest name", () => {
  expect(of("{{trigger.bdoy.id}}")).toEqual(["TEMPLATE_INVALID: trigger has no bdoy; did you mean body?"])
  expect(of("{{triger.body.id}}")).toEqual([
    "TEMPLATE_INVALID: a path begins with one of trigger, steps, run, workflow, source, not with triger; did you mean trigger?"
  ])
  expect(of("{{steps.befor.output.id}}")).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN: names no step of this workflow; did you mean before?"
  ])
  expect(of("{{steps.before.outptu.id}}")).toHaveLength(1)
  expect(of('{{run.id}} {{source.name}} {{workflow.version}} {{trigger.query.a ?? "b"}} {{trigger.body[0]}}')).toEqual(
    []
  )
})
