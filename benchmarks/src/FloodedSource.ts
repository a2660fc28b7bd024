/** The latency of senders to one source, while each request to another, flooded source begins runs of several workflows. */
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { atMost, type Outcome, type Plan, startProcess } from "./Comparison.ts"
import type { GeneratorCommands, Sent } from "./Generator.ts"
import { makeRow } from "./Report.ts"
import * as Worker from "./Worker.ts"
import { graphs } from "./WorkflowGraphs.ts"
import { drained } from "./Workflows.ts"

const workflows = 6
/** Requests per second to the flooded source, and to the other one. */
const flood = 150
const quiet = 40

const scenario = `${workflows} workflows on a source with ${flood} requests/s, seen by senders to another; reference: the same flood without workflows`

export const floodedSource = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const database = "flooded_source"
  const url = yield* bench.postgres.database(database)
  const gateway = yield* startProcess(plan, database, url, database)
  const sql = yield* make({ url: Redacted.make(url) })
  const flooding = yield* Worker.start<GeneratorCommands>("./Generator.ts")
  const graph = graphs[1]!
  const destination = yield* gateway.create("destinations", {
    name: database,
    type: "HTTP",
    config: { url: `${bench.targetOrigin}/${database}` }
  })
  const source = (name: string) => gateway.create("sources", { name, type: "WEBHOOK" })
  const [plain, loud, other] = [yield* source("plain"), yield* source("loud"), yield* source("other")]
  const steps = graph.steps(destination)
  for (let n = 0; n < workflows; n++) {
    yield* gateway.create("workflows", { name: `loud-${n}`, source_id: loud, steps, edges: graph.edges })
  }
  const offer = (worker: typeof flooding, id: string, perSecond: number, seconds: number) =>
    worker.call("offer", {
      urls: [`${gateway.origin}/e/${id}`],
      run: bench.nextRun(),
      perSecond,
      seconds,
      connections: 100
    })

  /** Measures what senders to the other source see during the flood. */
  const beside = Effect.fnUntraced(function* (flooded: string) {
    yield* bench.postgres.checkpoint
    const under = yield* Effect.forkChild(offer(flooding, flooded, flood, settings.leadIn + settings.offered))
    yield* Effect.sleep(settings.leadIn * 1_000)
    const sent = yield* offer(bench.generator, other, quiet, settings.offered)
    const { acknowledged, refused } = yield* Fiber.join(under)
    const left = yield* drained(sql)
    const { p50, p99 } = sent.acknowledge
    yield* progress(
      `${flooded === loud ? "workflows" : "none"}: others p50 ${p50.toFixed(1)} ms p99 ${p99.toFixed(1)} ms; ` +
        `of the flood ${acknowledged} taken, ${refused} refused, ${left} runs left`
    )
    return { ...sent, refused: sent.refused + refused + left }
  })

  // Warm-up: code and buffers have been used before the measurement.
  yield* beside(plain)
  yield* beside(loud)
  const found = { reference: [] as Array<Sent>, gateway: [] as Array<Sent> }
  for (let round = 0; round < settings.rounds; round++) {
    for (const side of round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)) {
      found[side].push(yield* beside(side === "gateway" ? loud : plain))
    }
  }
  const figure = (measure: string, of: (sent: Sent) => number, bound?: number) =>
    makeRow({
      scenario,
      measure,
      unit: "ms",
      reference: found.reference.map(of),
      gateway: found.gateway.map(of),
      ...(bound !== undefined && { required: atMost("ratio", bound) })
    })
  const rows = [
    figure("others' acknowledgement p50", ({ acknowledge }) => acknowledge.p50, 1.25),
    figure("others' acknowledgement p99", ({ acknowledge }) => acknowledge.p99),
    makeRow({
      scenario,
      measure: "requests refused, and runs left",
      unit: "",
      gateway: [found.gateway.reduce((sum, { refused }) => sum + refused, 0)],
      required: atMost("value", 0)
    })
  ]
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
