/**
 * Measures the formatter in CPU time of this process: each operation with its sample, the additional cost of a step in the
 * workflow engine, and loading. It needs no gateway and no database.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { InlineAction } from "@tidegate/workflows/Definition"
import { advance } from "@tidegate/workflows/Advance"
import { type Action, catalogOf } from "@tidegate/workflows/Catalog"
import { type Facts, queuedRun } from "@tidegate/workflows/RunState"
import { SecretTexts } from "@tidegate/workflows/SecretTexts"
import { compileWorkflow } from "@tidegate/workflows/Workflow"
import { atMost, type Outcome, type Plan, single } from "./Comparison.ts"
import type { Row } from "./Report.ts"
import { format, inLine } from "./WorkflowGraphs.ts"

const micros = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

/** Microseconds per call: the median of rounds. */
const measured = (call: () => unknown): number => {
  for (let times = 0; times < 200; times++) call()
  const rounds = Array.from({ length: 9 }, () => {
    const from = micros()
    let times = 0
    for (; micros() - from < 20_000;) for (let ten = 0; ten < 10; ten++, times++) call()
    return (micros() - from) / times
  })
  return rounds.toSorted((a, b) => a - b)[4]!
}

/** The slowest of a hundred calls, in microseconds by the clock. */
const slowest = (call: () => unknown): number => {
  const took = Array.from({ length: 2_000 }, () => {
    const from = performance.now()
    call()
    return (performance.now() - from) * 1_000
  })
  return took.toSorted((a, b) => a - b)[1_980]!
}

const scenario = "Formatter, each operation with its sample"
const steps = 5

/** Does nothing, with the same input as a step of the formatter. */
const nothing: Action = {
  inputs: ["input"],
  required: ["input"],
  pure: true,
  compile: ({ config }) =>
    Result.succeed({ config, evaluate: () => ({ kind: "succeeded", output: { result: "" }, ports: ["out"] }) })
}

const facts: Facts = {
  trigger: { headers: {}, body: { type: "order.created" }, query: {}, path: "", received_at: "2026-01-01T00:00:00Z" },
  run: { id: "wfr_1" },
  workflow: {},
  source: {}
}

/** The time of each of five consecutive steps in a run that execute this action. */
const stepTakes = (find: (written: InlineAction) => Action | null) => {
  const ids = Array.from({ length: steps }, (_, at) => `step_${at}`)
  const graph = ids.map((id) => format(id, "{{trigger.body.type}}"))
  const workflow = Result.getOrThrow(compileWorkflow(graph, inLine(ids), catalogOf(new Map([["formatter", find]]))))
  const time = { now: Date.parse("2026-01-01T00:00:00Z"), clock: () => performance.now() }
  const run = () => {
    const work = advance(workflow, facts, queuedRun(workflow), { type: "begun" }, time, new SecretTexts())
    for (;;) {
      const part = work.next()
      if (part.done === true) return part.value
    }
  }
  return measured(run) / steps
}

export const formatter = Effect.fnUntraced(function* ({ progress }: Plan) {
  const before = { memory: process.memoryUsage().rss, at: micros() }
  const { compile, run } = yield* Effect.promise(() => import("../../packages/formatter/src/Formatter.ts"))
  const { categories } = yield* Effect.promise(() => import("../../packages/formatter/src/Operations.ts"))
  const context = {
    anchor: Date.parse("2026-01-01T00:00:00Z"),
    timezone: "UTC",
    seed: "bench",
    clock: () => performance.now()
  }
  const rows: Array<Row> = [
    single(scenario, "loading, CPU", "ms", (micros() - before.at) / 1_000),
    single(scenario, "loading, memory", "MB", (process.memoryUsage().rss - before.memory) / 1e6)
  ]
  let own = 0
  for (const { label, operations } of categories) {
    const taken = operations.map(({ key, sample }) => {
      const step = Result.getOrThrow(compile({ operation: key, options: sample.options }))
      const call = () => run(step, sample.inputs, context)
      return { key, call, micros: measured(call) }
    })
    own = taken.find(({ key }) => key === "text.uppercase")?.micros ?? own
    const all = taken.reduce((sum, one) => sum + one.micros, 0)
    const [heaviest] = taken.toSorted((a, b) => b.micros - a.micros)
    rows.push(
      single(scenario, `${label}: operations`, "operations/s", Math.round((taken.length * 1e6) / all)),
      single(scenario, `${label}: ${heaviest!.key}, which takes most`, "µs", heaviest!.micros),
      single(scenario, `${label}: ${heaviest!.key}, p99`, "µs", slowest(heaviest!.call))
    )
    yield* progress(`${label}: ${taken.length} operations, ${heaviest!.key} takes most`)
  }
  const { formatterAction } = yield* Effect.promise(() => import("@tidegate/workflows/actions/FormatterActions"))
  const engine = stepTakes(() => nothing)
  const added = stepTakes(formatterAction) - engine - own
  const within = "Formatter, in a run of five steps"
  rows.push(
    single(within, "a step that does nothing", "µs", engine),
    single(within, "text.uppercase, beside that and its own work", "µs", added, atMost("value", 5))
  )
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
})
