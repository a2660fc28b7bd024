/** The latency of senders to one source, while many requests go somewhere else. */
import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { atMost, type Outcome, type Plan, startProcess } from "./Comparison.ts"
import type { GeneratorCommands, Sent } from "./Generator.ts"
import { makeRow } from "./Report.ts"
import * as Worker from "./Worker.ts"

/** Requests per second of the flood, and to the other source. */
export const flood = 150
const quiet = 40

type Gateway = Effect.Success<ReturnType<typeof startProcess>>
type Failure = Effect.Error<ReturnType<Gateway["create"]>>

interface Flooded {
  readonly name: string
  readonly scenario: string
  /** Prepares the flood. Returns its URLs, and its URLs in the reference; without URLs, there is no flood. */
  readonly prepare: (
    gateway: Gateway
  ) => Effect.Effect<{ readonly reference: ReadonlyArray<string>; readonly gateway: ReadonlyArray<string> }, Failure>
  /** Waits for the work that the flood has begun, and returns how much of it is left. */
  readonly drained: (sql: PgConnection) => Effect.Effect<number, { readonly message: string }>
  /** The largest allowed ratio of the other source's latency. Absent: the ratio is only shown. */
  readonly bounds: { readonly p50?: number; readonly p99?: number }
}

export const besideFlood = Effect.fnUntraced(function* (plan: Plan, of: Flooded) {
  const { bench, progress, settings } = plan
  const { bounds, name, scenario } = of
  const url = yield* bench.postgres.database(name)
  const gateway = yield* startProcess(plan, name, url, name)
  const sql = yield* make({ url: Redacted.make(url) })
  const flooding = yield* Worker.start<GeneratorCommands>("./Generator.ts")
  const other = yield* gateway.create("sources", { name: "other", type: "WEBHOOK" })
  const urls = yield* of.prepare(gateway)
  const offer = (worker: typeof flooding, to: ReadonlyArray<string>, perSecond: number, seconds: number) =>
    worker.call("offer", { urls: to, run: bench.nextRun(), perSecond, seconds, connections: 100 })

  /** Measures what senders to the other source see during the flood. */
  const beside = Effect.fnUntraced(function* (side: "reference" | "gateway") {
    yield* bench.postgres.checkpoint
    const to = urls[side]
    const seconds = settings.leadIn + settings.offered
    const none = Effect.succeed({ acknowledged: 0, refused: 0 })
    const under = yield* Effect.forkChild(to.length === 0 ? none : offer(flooding, to, flood, seconds))
    yield* Effect.sleep(settings.leadIn * 1_000)
    const sent = yield* offer(bench.generator, [`${gateway.origin}/e/${other}`], quiet, settings.offered)
    const { acknowledged, refused } = yield* Fiber.join(under)
    const left = yield* of.drained(sql)
    const { p50, p99 } = sent.acknowledge
    yield* progress(
      `${side}: others p50 ${p50.toFixed(1)} ms p99 ${p99.toFixed(1)} ms; ` +
        `of the flood ${acknowledged} taken, ${refused} refused, ${left} left to do`
    )
    return { ...sent, refused: sent.refused + left }
  })

  // Warm-up: code and buffers have been used before the measurement.
  yield* beside("reference")
  yield* beside("gateway")
  const found = { reference: [] as Array<Sent>, gateway: [] as Array<Sent> }
  for (let round = 0; round < settings.rounds; round++) {
    for (const side of round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)) {
      found[side].push(yield* beside(side))
    }
  }
  const figure = (measure: string, latency: (sent: Sent) => number, bound?: number) =>
    makeRow({
      scenario,
      measure,
      unit: "ms",
      reference: found.reference.map(latency),
      gateway: found.gateway.map(latency),
      ...(bound !== undefined && { required: atMost("ratio", bound) })
    })
  const rows = [
    figure("others' acknowledgement p50", ({ acknowledge }) => acknowledge.p50, bounds.p50),
    figure("others' acknowledgement p99", ({ acknowledge }) => acknowledge.p99, bounds.p99),
    makeRow({
      scenario,
      measure: "others' requests refused, and work left",
      unit: "",
      gateway: [found.gateway.reduce((sum, { refused }) => sum + refused, 0)],
      required: atMost("value", 0)
    })
  ]
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
