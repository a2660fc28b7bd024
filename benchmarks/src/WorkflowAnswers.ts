/** A workflow that answers its sender, beside the same workflow that does not, in one run at a fixed rate. */
import * as Effect from "effect/Effect"
import { type Outcome, type Plan, single } from "./Comparison.ts"
import { makeRow, type Row } from "./Report.ts"
import { type Graph, graphs } from "./WorkflowGraphs.ts"
import { begin, type Found, offered } from "./Workflows.ts"

/** How much longer (ms, p50) the answer of a run may take than the run itself until its last step is stored. */
const longer = 5

export const workflowAnswers = Effect.fnUntraced(function* (plan: Plan) {
  const { progress, settings } = plan
  const rows: Array<Row> = []
  for (const [index, step] of (["done", "send"] as const).entries()) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const graph: Graph = graphs[index]!
        const answering = { ...graph, triggers: { answer: { step_id: step, timeout_ms: 10_000 } } }
        const subjects = {
          later: yield* begin(plan, `workflow_later_${index}`, graph),
          answered: yield* begin(plan, `workflow_answered_${index}`, answering)
        }
        for (const subject of Object.values(subjects)) yield* offered(plan, subject, settings.warmUp)
        const later: Array<Found> = []
        const answered: Array<Found> = []
        for (let round = 0; round < settings.rounds; round++) {
          later.push(yield* offered(plan, subjects.later, settings.saturated))
          answered.push(yield* offered(plan, subjects.answered, settings.saturated))
          const [one, other] = [later.at(-1)!, answered.at(-1)!]
          yield* progress(
            `${graph.name}: last step p50 ${one.p50.toFixed(1)} ms p99 ${one.p99.toFixed(1)} ms, ` +
              `answer p50 ${other.answered.p50.toFixed(1)} ms p99 ${other.answered.p99.toFixed(1)} ms`
          )
        }
        const scenario = `Answer by a workflow of ${graph.name} at 100/s; reference: request to last step without an answer`
        const row = (measure: string, of: (one: Found) => number, to: (one: Found) => number) =>
          makeRow({ scenario, measure, unit: "ms", reference: later.map(of), gateway: answered.map(to) })
        const difference = answered.map((one, round) => one.answered.p50 - later[round]!.p50).toSorted((a, b) => a - b)
        rows.push(
          row(
            "p50",
            (one) => one.p50,
            (one) => one.answered.p50
          ),
          row(
            "p99",
            (one) => one.p99,
            (one) => one.answered.p99
          ),
          single(scenario, "difference of p50, median", "ms", difference[difference.length >> 1]!, {
            of: "value",
            atMost: longer
          }),
          single(
            scenario,
            "runs missing, failed or refused",
            "",
            [...later, ...answered].reduce((sum, one) => sum + one.missing + one.refused, 0),
            { of: "value", atMost: 0 }
          )
        )
      })
    )
  }
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
})
