/** Runs of the same workflows in this version and in the version before, in one run. */
import * as Effect from "effect/Effect"
import { atLeast, atMost, type Outcome, type Plan, single } from "./Comparison.ts"
import { makeRow, type Requirement, type Row } from "./Report.ts"
import { type Graph, graphs } from "./WorkflowGraphs.ts"
import { begin, type Found, offered, saturated } from "./Workflows.ts"

const sides = ["reference", "gateway"] as const
type Sides = Record<(typeof sides)[number], Array<Found>>

const rowsOf = ({ name }: Graph, loads: { readonly saturated: Sides; readonly offered: Sides }): ReadonlyArray<Row> => {
  const scenario = `Workflow of ${name}; reference: the version before`
  const row = (
    measure: string,
    unit: string,
    load: keyof typeof loads,
    of: (one: Found) => number,
    required?: Requirement
  ) =>
    makeRow({
      scenario,
      measure,
      unit,
      reference: loads[load].reference.map(of),
      gateway: loads[load].gateway.map(of),
      ...(required === undefined ? {} : { required })
    })
  const all = Object.values(loads).flatMap(({ gateway, reference }) => reference.concat(gateway))
  return [
    row("runs, saturated", "runs/s", "saturated", (one) => one.perSecond, atLeast("ratio", 0.97)),
    row("CPU per 1,000 runs, saturated", "s", "saturated", (one) => one.gateway + one.postgres, atMost("ratio", 1.03)),
    row("SQL statements per run, saturated", "", "saturated", (one) => one.statements),
    row("CPU per 1,000 runs, 100/s", "s", "offered", (one) => one.gateway + one.postgres),
    row("request to last step at 100/s, p50", "ms", "offered", (one) => one.p50, atMost("ratio", 1.03)),
    row("request to last step at 100/s, p99", "ms", "offered", (one) => one.p99),
    single(
      scenario,
      "runs missing, failed or refused",
      "",
      all.reduce((sum, one) => sum + one.missing + one.refused, 0),
      { of: "value", atMost: 0 }
    )
  ]
}

export const workflowVersions = Effect.fnUntraced(function* (plan: Plan) {
  const { progress, settings } = plan
  const rows: Array<Row> = []
  for (const [index, graph] of graphs.entries()) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const subjects = {
          reference: yield* begin({ ...plan, gatewayEntry: plan.beforeEntry }, `workflow_before_${index}`, graph),
          gateway: yield* begin(plan, `workflow_after_${index}`, graph)
        }
        yield* saturated(plan, subjects.reference, settings.warmUp)
        yield* saturated(plan, subjects.gateway, settings.warmUp)
        const loads = {
          saturated: { reference: [], gateway: [] } as Sides,
          offered: { reference: [], gateway: [] } as Sides
        }
        for (let round = 0; round < settings.rounds; round++) {
          const order = round % 2 === 0 ? sides : sides.toReversed()
          for (const [name, load] of [
            ["saturated", saturated],
            ["offered", offered]
          ] as const) {
            for (const side of order) {
              const found = yield* load(plan, subjects[side], settings.saturated)
              loads[name][side].push(found)
              yield* progress(
                `${graph.name}, ${name}, ${subjects[side].database}: ${found.perSecond.toFixed(0)} runs/s, ` +
                  `CPU ${found.gateway.toFixed(3)} + ${found.postgres.toFixed(3)} s/1,000, p50 ${found.p50.toFixed(1)} ms p99 ${found.p99.toFixed(1)} ms`
              )
            }
          }
        }
        rows.push(...rowsOf(graph, loads))
      })
    )
  }
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
})
