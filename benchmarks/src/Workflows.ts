/**
 * Runs of workflows compared with the event path, in one run: at saturation, and at a fixed rate. A run has ended when its last
 * step is stored.
 */
import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import { gatewayWith, type Outcome, type Plan, single, startProcess, warmUp } from "./Comparison.ts"
import type { Sent } from "./Generator.ts"
import { type Graph, graphs } from "./WorkflowGraphs.ts"
import { type Measurement, offer, saturate } from "./Measurement.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Requirement, type Row } from "./Report.ts"
import type { WorkerError } from "./Worker.ts"

const perSecond = 100
/** After the last request: when no run ends for this time, unfinished runs count as missing. */
const stallMillis = 15_000

/** The results of one phase. CPU is in seconds per 1,000 runs. */
export interface Found {
  readonly runs: number
  readonly missing: number
  readonly refused: number
  readonly perSecond: number
  readonly stepsPerSecond: number
  readonly statements: number
  readonly p50: number
  readonly p99: number
  readonly gateway: number
  readonly postgres: number
  /** To the sender's answer, in milliseconds. */
  readonly answered: Sent["acknowledge"]
}

/** Starts a gateway with the workflow. */
export const begin = Effect.fnUntraced(function* (plan: Plan, database: string, graph: Graph) {
  const url = yield* plan.bench.postgres.database(database)
  const gateway = yield* startProcess(plan, database, url, database)
  const source = yield* gateway.create("sources", { name: database, type: "WEBHOOK" })
  const destination = yield* gateway.create("destinations", {
    name: database,
    type: "HTTP",
    config: { url: `${plan.bench.targetOrigin}/${database}` }
  })
  const steps = graph.steps(destination)
  const { edges, triggers } = graph
  yield* gateway.create("workflows", { name: database, source_id: source, steps, edges, ...(triggers && { triggers }) })
  const sql = yield* make({ url: Redacted.make(url) })
  return { gateway, database, sql, steps: steps.length, url: `${gateway.origin}/e/${source}` }
})

type Subject = Effect.Success<ReturnType<typeof begin>>

/** Waits until no run is queued, or until no run has ended for a long time. */
export const drained = Effect.fnUntraced(function* (
  sql: PgConnection,
  tables: ReadonlyArray<string> = ["workflow_queue"]
) {
  const query = `select ${tables.map((of) => `(select count(*)::int from ${of})`).join(" + ")}`
  let left = Number.MAX_SAFE_INTEGER
  let movedAt = performance.now()
  while (left > 0 && performance.now() - movedAt < stallMillis) {
    const [row] = yield* sql.queryValues(query)
    const now = Number(row?.[0])
    if (now !== left) movedAt = performance.now()
    left = now
    // A count reads all rows of the queue: fifty a second were a quarter of the server's time.
    if (left > 0) yield* Effect.sleep("250 millis")
  }
  return left
})

const measure = Effect.fnUntraced(function* (
  { bench }: Plan,
  { database, gateway, sql, steps }: Subject,
  send: (run: number) => Effect.Effect<Sent, WorkerError>
): Effect.fn.Return<Found, SqlError | WorkerError> {
  yield* bench.postgres.checkpoint
  const observe = Effect.gen(function* () {
    return {
      statements: yield* bench.postgres.statements(database),
      gateway: processStats(gateway.pid).cpuSeconds,
      postgres: processStats(bench.postgres.pid).cpuSeconds
    }
  })
  const [since] = yield* sql.queryValues("select clock_timestamp()")
  const before = yield* observe
  const sent = yield* send(bench.nextRun())
  const missing = yield* drained(sql)
  const after = yield* observe
  const [row] = yield* sql.queryValues(
    `select count(*)::int, count(*) filter (where r.status <> 'succeeded')::int,
      extract(epoch from max(r.finished_at) - min(q.ingested_at))::float8,
      percentile_cont(0.5) within group (order by extract(epoch from r.finished_at - q.ingested_at))::float8,
      percentile_cont(0.99) within group (order by extract(epoch from r.finished_at - q.ingested_at))::float8
    from workflow_runs r join requests q on q.id = r.request_id where r.created_at >= $1 and r.finished_at is not null`,
    [since?.[0]]
  )
  const [runs = 0, failed = 0, took = 0, p50 = 0, p99 = 0] = (row ?? []).map(Number)
  const per = (of: "statements" | "gateway" | "postgres"): number => (after[of] - before[of]) / runs
  return {
    runs,
    missing: missing + failed + sent.acknowledged - runs,
    refused: sent.refused,
    perSecond: runs / took,
    stepsPerSecond: (runs / took) * steps,
    statements: per("statements"),
    p50: p50 * 1_000,
    p99: p99 * 1_000,
    gateway: per("gateway") * 1_000,
    postgres: per("postgres") * 1_000,
    answered: sent.acknowledge
  }
})

export const saturated = (plan: Plan, subject: Subject, seconds: number) =>
  measure(plan, subject, (run) =>
    plan.bench.generator.call("saturate", { urls: [subject.url], run, inFlight: 100, seconds })
  )

export const offered = (plan: Plan, subject: Subject, seconds: number) =>
  measure(plan, subject, (run) =>
    plan.bench.generator.call("offer", { urls: [subject.url], run, perSecond, seconds, connections: 100 })
  )

interface Rounds {
  readonly saturated: Array<Found>
  readonly offered: Array<Found>
}

const rowsOf = (
  { name, required }: Graph,
  found: Rounds,
  events: { readonly saturated: ReadonlyArray<Measurement>; readonly offered: ReadonlyArray<Measurement> }
): ReadonlyArray<Row> => {
  const row = (
    measure: string,
    unit: string,
    load: keyof Rounds,
    of: (one: Found) => number,
    beside?: (one: Measurement) => number,
    required?: Requirement
  ) =>
    makeRow({
      scenario: `Workflow of ${name}; reference: an event by one connection`,
      measure,
      unit,
      ...(beside === undefined ? {} : { reference: events[load].map(beside) }),
      gateway: found[load].map(of),
      ...(required === undefined ? {} : { required })
    })
  const all = [...found.saturated, ...found.offered]
  return [
    row(
      "runs, saturated",
      "runs/s",
      "saturated",
      (one) => one.perSecond,
      (one) => one.perSecond,
      required
    ),
    row("steps, saturated", "steps/s", "saturated", (one) => one.stepsPerSecond),
    row(
      "SQL statements per run, saturated",
      "",
      "saturated",
      (one) => one.statements,
      (one) => one.statements
    ),
    row(
      "SQL statements per run, 100/s",
      "",
      "offered",
      (one) => one.statements,
      (one) => one.statements
    ),
    row(
      "CPU per 1,000 runs, gateway",
      "s",
      "saturated",
      (one) => one.gateway,
      (one) => one.cpu.subject
    ),
    row(
      "CPU per 1,000 runs, PostgreSQL",
      "s",
      "saturated",
      (one) => one.postgres,
      (one) => one.cpu.postgres
    ),
    row(
      "request to last step at 100/s, p50",
      "ms",
      "offered",
      (one) => one.p50,
      (one) => one.senderToTarget.p50
    ),
    row(
      "request to last step at 100/s, p99",
      "ms",
      "offered",
      (one) => one.p99,
      (one) => one.senderToTarget.p99
    ),
    single(
      `Workflow of ${name}; reference: an event by one connection`,
      "runs missing, failed or refused",
      "",
      all.reduce((sum, one) => sum + one.missing + one.refused, 0),
      { of: "value", atMost: 0 }
    )
  ]
}

export const workflows = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const rounds = Math.min(3, settings.rounds)
  const rows: Array<Row> = []
  const reference = { saturated: [] as Array<Measurement>, offered: [] as Array<Measurement> }
  for (const [index, graph] of graphs.entries()) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const events = yield* gatewayWith(plan, `workflow_events_${index}`, 1, [])
        const subject = yield* begin(plan, `workflow_${index}`, graph)
        yield* warmUp(plan, events)
        yield* saturated(plan, subject, settings.warmUp)
        const found: Rounds = { saturated: [], offered: [] }
        const beside = { saturated: [] as Array<Measurement>, offered: [] as Array<Measurement> }
        for (let round = 0; round < rounds; round++) {
          const phase = { leadIn: settings.leadIn, seconds: settings.saturated }
          const turns = [
            Effect.map(saturate(bench, events, phase), (one) => void beside.saturated.push(one)),
            Effect.map(saturated(plan, subject, settings.saturated), (one) => void found.saturated.push(one))
          ]
          for (const turn of round % 2 === 0 ? turns : turns.toReversed()) yield* turn
          beside.offered.push(yield* offer(bench, events, { ...phase, perSecond }))
          found.offered.push(yield* offered(plan, subject, settings.saturated))
          const [event, run] = [beside.saturated.at(-1)!, found.saturated.at(-1)!]
          yield* progress(
            `${graph.name}: ${run.perSecond.toFixed(0)} runs/s beside ${event.perSecond.toFixed(0)} events/s, ` +
              `CPU ${run.gateway.toFixed(3)} + ${run.postgres.toFixed(3)} s/1,000 beside ${event.cpu.subject.toFixed(3)} + ${event.cpu.postgres.toFixed(3)}, ` +
              `${run.statements.toFixed(2)} statements, p50 ${found.offered.at(-1)!.p50.toFixed(1)} ms p99 ${found.offered.at(-1)!.p99.toFixed(1)} ms`
          )
        }
        rows.push(...rowsOf(graph, found, beside))
        reference.saturated.push(...beside.saturated)
        reference.offered.push(...beside.offered)
      })
    )
  }
  return {
    rows,
    measured: {
      offered: { reference: reference.offered, gateway: [] },
      saturated: { reference: reference.saturated, gateway: [] }
    }
  } satisfies Outcome
}, Effect.scoped)
