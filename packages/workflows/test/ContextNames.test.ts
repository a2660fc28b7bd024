import { Result } from "effect"
import { expect, it } from "vitest"
import { compileWorkflow } from "../src/Workflow.ts"
import { catalog, echo, edge, filter } from "./Graphs.ts"

const told = (condition: unknown, isStored = false) => {
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

it("A condition about a name that a run does not have is refused with the nearest one", () => {
  expect(told({ bdoy: { status: "paid" } })).toEqual([
    "CONDITION_INVALID config.conditions.bdoy: bdoy is nothing that a run has; did you mean body?"
  ])
  expect(told({ trigger: { bdoy: { status: "paid" } } })).toEqual([
    "CONDITION_INVALID config.conditions.trigger.bdoy: trigger has no bdoy; did you mean body?"
  ])
  expect(told({ $or: [{ "triger.body.status": "paid" }] })).toEqual([
    "CONDITION_INVALID config.conditions.$or[0].triger.body.status: triger is nothing that a run has; did you mean trigger?"
  ])
  expect(told({ steps: { before: { outptu: { a: 1 } } } })).toEqual([
    "CONDITION_INVALID config.conditions.steps.before.outptu: outptu is nothing that a step leaves: there are status, output, error; did you mean output?"
  ])
})

it("A reference to a step that is not there, or does not lead to the condition, is refused", () => {
  expect(told({ trigger: { body: { id: { $ref: "steps.befroe.output.id" } } } })).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN config.conditions.trigger.body.id.$ref: names no step of this workflow; did you mean before?"
  ])
  expect(told({ trigger: { body: { id: { $eq: { $ref: "steps.after.output.id" } } } } })).toEqual([
    "TEMPLATE_REFERENCE_NOT_UPSTREAM config.conditions.trigger.body.id.$eq.$ref: the step after does not lead to this one"
  ])
  expect(told({ trigger: { body: { id: { $ref: "tirgger.body.id" } } } })).toEqual([
    "CONDITION_INVALID config.conditions.trigger.body.id.$ref: tirgger is nothing that a run has; did you mean trigger?"
  ])
  expect(told({ "steps.gone.output.id": 1 })).toEqual([
    "TEMPLATE_REFERENCE_UNKNOWN config.conditions.steps.gone.output.id: names no step of this workflow"
  ])
})

it("A template in a condition is refused, because nothing fills it in", () => {
  expect(told({ trigger: { body: { id: "{{steps.before.output.id}}" } } })).toEqual([
    `CONDITION_INVALID config.conditions.trigger.body.id: is a template, and conditions have none: compare with {"$ref": "trigger.body.…"}`
  ])
  expect(told({ body: { id: { $in: ["a", "{{trigger.body.id}}"] } } })).toHaveLength(1)
})

it("Conditions and references that may hold are taken, whatever is below a body or an output", () => {
  for (const condition of [
    { body: { bdoy: 1, a: { $ref: "b" } } },
    { trigger: { body: { bdoy: { $ref: "steps.before.output.x[0].y" } }, request_id: { $exist: true } } },
    { steps: { before: { output: { outptu: 1 }, status: "succeeded" } }, run: { attempt: 1 }, "source.name": "shop" },
    { $not: { $and: [{ workflow: { version: { $gte: 2 } } }, { headers: { "x-a": "{" } }] } }
  ]) {
    expect(told(condition)).toEqual([])
  }
})

it("A stored definition goes on as it was written", () => {
  expect(told({ bdoy: { id: "{{trigger.body.id}}" } }, true)).toEqual([])
})

it("A template whose names a run does not have is refused with the nearest one", () => {
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
