/** The cost of runs that wait for an hour: only their rows. */
import * as Effect from "effect/Effect"
import type { Outcome, Plan } from "./Comparison.ts"
import { fill } from "./Measurement.ts"
import { processMemory } from "./ProcessMemory.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Row } from "./Report.ts"
import { format, inLine } from "./WorkflowGraphs.ts"
import { begin } from "./Workflows.ts"

const waiting = 10_000

/** The two ways of waiting: for a time, and for a call that does not come. */
const pauses = {
  delay: { mode: "for", amount: 1, unit: "hours" },
  wait: { for: "callback", amount: 1, unit: "hours" }
}

const waitIn = Effect.fnUntraced(function* (plan: Plan, kind: keyof typeof pauses) {
  const { bench, settings } = plan
  const count = settings.rounds === 1 ? waiting / 10 : waiting
  const subject = yield* begin(plan, `workflow_${kind}`, {
    name: kind,
    steps: () => [{ id: "pause", kind, config: pauses[kind] }, format("after", "{{trigger.body.type}}")],
    edges: inLine(["pause", "after"])
  })
  const { pid } = subject.gateway
  const idle = Effect.fnUntraced(function* () {
    // After this time, the work under way has ended, and its memory has been freed.
    yield* Effect.sleep("10 seconds")
    const look = () => ({ own: processStats(pid).cpuSeconds, sql: processStats(bench.postgres.pid).cpuSeconds })
    const before = look()
    const seconds = 15
    yield* Effect.sleep(seconds * 1_000)
    const after = look()
    const { gateway } = processMemory([pid], bench.postgres.pid)
    return {
      memory: gateway / 1e6,
      gateway: ((after.own - before.own) / seconds) * 100,
      postgres: ((after.sql - before.sql) / seconds) * 100
    }
  })
  // Warm-up: code and buffers have been used before the measurement.
  yield* fill(bench, subject.url, count / 10, 60)
  const without = yield* idle()
  yield* fill(bench, subject.url, count, 120)
  const [row] = yield* subject.sql.queryValues("select count(*)::int from workflow_queue")
  const within = yield* idle()
  const scenario = `${Number(row?.[0]).toLocaleString("en-US")} runs in a ${kind} of an hour; reference: ${(count / 10).toLocaleString("en-US")}`
  const figure = (measure: string, unit: string, of: (one: typeof within) => number) =>
    makeRow({ scenario, measure, unit, reference: [of(without)], gateway: [of(within)] })
  return [
    figure("memory of the gateway", "MB", (one) => one.memory),
    figure("idle CPU, gateway", "% of a core", (one) => one.gateway),
    figure("idle CPU, PostgreSQL", "% of a core", (one) => one.postgres)
  ]
}, Effect.scoped)

export const waitingRuns = Effect.fnUntraced(function* (plan: Plan) {
  const rows: Array<Row> = [...(yield* waitIn(plan, "delay")), ...(yield* waitIn(plan, "wait"))]
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
})
