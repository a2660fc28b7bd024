/**
 * What is run, in which order, and what must hold. The two subjects of a scenario are up at the same time and are loaded
 * in turn, and ratios are taken between neighbours, because the speed of a shared machine drifts by the minute.
 */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Gateway from "./Gateway.ts"
import { type Bench, fill, type Measurement, offer, saturate, type Subject } from "./Measurement.ts"
import type { PipelineCommands } from "./Pipeline.ts"
import { makeRow, type Requirement, type Row } from "./Report.ts"
import * as Worker from "./Worker.ts"

/** Sizes of a run. Times are seconds. */
export interface Settings {
  readonly rounds: number
  /** Saturation of each subject before its first phase. */
  readonly warmUp: number
  /** The part of each phase that is not measured, at its start. */
  readonly leadIn: number
  readonly saturated: number
  readonly offered: number
  readonly perSecond: number
  readonly backlog: number
  /** Limit of the time spent filling the backlog. */
  readonly backlogFill: number
}

/** About nine minutes. */
export const fullSettings: Settings = {
  rounds: 5,
  warmUp: 3,
  leadIn: 1,
  saturated: 4,
  offered: 6,
  perSecond: 1_000,
  backlog: 500_000,
  backlogFill: 200
}

/** A check that everything runs; its figures mean little. */
export const quickSettings: Settings = {
  ...fullSettings,
  rounds: 1,
  warmUp: 2,
  saturated: 2,
  offered: 2,
  backlog: 10_000,
  backlogFill: 20
}

/** What the scenarios need beside the bench: sizes, where the gateway is, where its files go, and who hears of progress. */
export interface Plan {
  readonly bench: Bench
  readonly settings: Settings
  readonly gatewayEntry: string
  readonly home: string
  readonly log: string
  /** Flags for the Node process of a subject, by its name. */
  readonly execArgv: (name: string) => ReadonlyArray<string>
  readonly progress: (line: string) => Effect.Effect<void>
}

type Load = "offered" | "saturated"

/** The measurements of both subjects under one load, in order of the rounds. */
export interface Sides {
  readonly reference: ReadonlyArray<Measurement>
  readonly gateway: ReadonlyArray<Measurement>
}

/** Figures of one scenario: rows for the table, and everything measured. */
export interface Outcome {
  readonly rows: ReadonlyArray<Row>
  readonly measured: Readonly<Record<Load, Sides>>
}

const atLeast = (of: Requirement["of"], bound: number): Requirement => ({ of, atLeast: bound })
const atMost = (of: Requirement["of"], bound: number): Requirement => ({ of, atMost: bound })

/** A filter that reads two places of the body and matches, and a retry rule: the work of rules without its effects. */
const RULES = [
  { type: "filter", body: { type: { $in: ["order.created", "order.paid"] }, customer: { country: "DE" } } },
  { type: "retry", strategy: "exponential", count: 5, interval: 60_000, response_status_codes: ["429", "500-599"] }
]

const startPipeline = Effect.fnUntraced(function* (plan: Plan, name: string) {
  const { bench } = plan
  const databaseUrl = yield* bench.postgres.database(name)
  const worker = yield* Worker.start<PipelineCommands>("./Pipeline.ts", plan.execArgv(name))
  const lane = `/${name}`
  const { url } = yield* worker.call("start", { databaseUrl, targetUrl: `${bench.targetOrigin}${lane}` })
  return { pid: worker.pid, database: name, url, lanes: [lane] } satisfies Subject
})

const startGateway = Effect.fnUntraced(function* (plan: Plan, name: string) {
  const databaseUrl = yield* plan.bench.postgres.database(name)
  return yield* Gateway.start({
    entry: plan.gatewayEntry,
    databaseUrl,
    home: join(plan.home, name),
    log: plan.log,
    execArgv: plan.execArgv(name)
  })
})

/** A gateway with one source and as many connections, all to lanes of the target. */
const gatewayWith = Effect.fnUntraced(function* (
  plan: Plan,
  name: string,
  connections: number,
  rules: ReadonlyArray<object>
) {
  const gateway = yield* startGateway(plan, name)
  const lanes = Array.from({ length: connections }, (_, index) => `/${name}-${index}`)
  const destinations = lanes.map((lane) => ({ url: `${plan.bench.targetOrigin}${lane}` }))
  const url = yield* gateway.route({ name, destinations, rules })
  return { pid: gateway.pid, database: name, url, lanes } satisfies Subject
})

const summary = (what: string, found: Measurement): string =>
  `${what}: ${found.perSecond.toFixed(0)}/s, acknowledge p50 ${found.acknowledge.p50.toFixed(1)} ms p99 ` +
  `${found.acknowledge.p99.toFixed(1)} ms, to target p50 ${found.senderToTarget.p50.toFixed(1)} ms p99 ` +
  `${found.senderToTarget.p99.toFixed(1)} ms, other processes ${found.otherCores.toFixed(2)} cores` +
  (found.refusal === null ? "" : `, ${found.refused} refused: ${found.refusal}`)

const warmUp = (plan: Plan, subject: Subject) =>
  saturate(plan.bench, subject, { leadIn: 0, seconds: plan.settings.warmUp })

/** Loads both subjects in turn, the first one going second in every other round, so that a drift favours neither. */
const alternate = Effect.fnUntraced(function* (
  plan: Plan,
  subjects: Readonly<Record<keyof Sides, Subject>>,
  loads: ReadonlyArray<Load>
) {
  const { bench, settings, progress } = plan
  const { leadIn, offered, perSecond, saturated } = settings
  const sides = (): Record<keyof Sides, Array<Measurement>> => ({ reference: [], gateway: [] })
  const measured: Record<Load, ReturnType<typeof sides>> = { offered: sides(), saturated: sides() }
  for (let round = 0; round < settings.rounds; round++) {
    const order = round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)
    for (const load of loads) {
      for (const side of order) {
        const found = yield* load === "offered"
          ? offer(bench, subjects[side], { leadIn, seconds: offered, perSecond })
          : saturate(bench, subjects[side], { leadIn, seconds: saturated })
        measured[load][side].push(found)
        yield* progress(summary(`${subjects[side].database} ${load}`, found))
      }
    }
  }
  return measured
})

/** Makes rows of one scenario from both sides' measurements. */
const beside =
  (scenario: string, sides: Sides) =>
  (measure: string, unit: string, figure: (one: Measurement) => number, required?: Requirement): Row =>
    makeRow({
      scenario,
      measure,
      unit,
      reference: sides.reference.map(figure),
      gateway: sides.gateway.map(figure),
      ...(required && { required })
    })

/** A row with one figure and no reference. */
const single = (scenario: string, measure: string, unit: string, figure: number, required?: Requirement): Row =>
  makeRow({ scenario, measure, unit, gateway: [figure], ...(required && { required }) })

/** Requests refused, deliveries missing and bodies changed: nothing else counts when one of them is not zero. */
const faults = (scenario: string, found: ReadonlyArray<Measurement>): ReadonlyArray<Row> => {
  const total = (figure: (one: Measurement) => number) => found.reduce((sum, one) => sum + figure(one), 0)
  const none = atMost("value", 0)
  return [
    single(
      scenario,
      "requests refused",
      "",
      total((one) => one.refused),
      none
    ),
    single(
      scenario,
      "deliveries missing",
      "",
      total((one) => one.missing),
      none
    ),
    single(
      scenario,
      "bodies changed",
      "",
      total((one) => one.malformed),
      none
    ),
    single(
      scenario,
      "deliveries repeated",
      "",
      total((one) => one.duplicates)
    )
  ]
}

const relayAndPostgres = (one: Measurement): number => one.cpu.subject + one.cpu.postgres

/** The bare pipeline beside itself: what this machine does, and how far a ratio strays from 100 % by chance. */
export const pipeline = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* startPipeline(plan, "bare_first"),
    gateway: yield* startPipeline(plan, "bare_second")
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const saturated = beside("Saturated end to end; the bare pipeline in both columns", measured.saturated)
  const offered = beside(
    `${plan.settings.perSecond} events/s offered; the bare pipeline in both columns`,
    measured.offered
  )
  return {
    rows: [
      saturated("events delivered", "events/s", (one) => one.perSecond),
      saturated("SQL statements per event", "", (one) => one.statements),
      saturated("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99)
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/** The gateway beside the bare pipeline: throughput, latency, statements, CPU, memory. */
export const throughput = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* startPipeline(plan, "bare"),
    gateway: yield* gatewayWith(plan, "gateway", 1, [])
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const saturated = beside("Saturated end to end, one connection; reference: bare pipeline", measured.saturated)
  const offered = beside(`${plan.settings.perSecond} events/s offered; reference: bare pipeline`, measured.offered)
  return {
    rows: [
      saturated("events delivered", "events/s", (one) => one.perSecond, atLeast("ratio", 0.6)),
      saturated("SQL statements per event", "", (one) => one.statements, atMost("value", 0.1)),
      saturated("CPU per 1,000 events, relay", "s", (one) => one.cpu.subject),
      saturated("CPU per 1,000 events, PostgreSQL", "s", (one) => one.cpu.postgres),
      saturated("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      saturated("CPU per 1,000 events, generator and target", "s", (one) => one.cpu.generator + one.cpu.target),
      saturated("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      saturated("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      saturated("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      saturated("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      saturated("resident memory, peak", "MB", (one) => one.peakMegabytes),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50, atMost("ratio", 2)),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99, atMost("ratio", 2)),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50, atMost("ratio", 2)),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99, atMost("ratio", 2)),
      offered("events delivered", "events/s", (one) => one.perSecond),
      offered("SQL statements per event", "", (one) => one.statements),
      offered("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      offered("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway in these runs", [...measured.offered.gateway, ...measured.saturated.gateway])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/**
 * Three connections with filter and retry rules beside one connection without any: an event is one routed delivery, and
 * a core's worth of them is counted in CPU time of gateway and PostgreSQL.
 */
export const fanOut = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* gatewayWith(plan, "one", 1, []),
    gateway: yield* gatewayWith(plan, "three", 3, RULES)
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["saturated"])
  const row = beside(
    "Three connections with filter and retry rules, saturated; reference: one connection without rules",
    measured.saturated
  )
  return {
    rows: [
      row("events per core", "events/s", (one) => 1_000 / relayAndPostgres(one), atLeast("ratio", 0.8)),
      row("events delivered", "events/s", (one) => one.perSecond),
      row("SQL statements per event", "", (one) => one.statements),
      row("resident memory, peak", "MB", (one) => one.peakMegabytes),
      row("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway with three connections", measured.saturated.gateway)
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/** A destination paced to one delivery a second with a long backlog, and what that costs another destination. */
export const backlog = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, settings, progress } = plan
  const start = Effect.fnUntraced(function* (name: string) {
    const gateway = yield* startGateway(plan, name)
    const pacedLane = `/${name}-paced`
    const pacedUrl = yield* gateway.route({
      name: "paced",
      destinations: [{ url: `${bench.targetOrigin}${pacedLane}`, perSecond: 1 }],
      rules: []
    })
    const lane = `/${name}-free`
    const url = yield* gateway.route({
      name: "free",
      destinations: [{ url: `${bench.targetOrigin}${lane}` }],
      rules: []
    })
    const subject: Subject = { pid: gateway.pid, database: name, url, lanes: [lane] }
    return { subject, pacedUrl, pacedLane }
  })
  const plain = yield* start("without_backlog")
  const loaded = yield* start("with_backlog")
  yield* warmUp(plan, plain.subject)
  yield* warmUp(plan, loaded.subject)
  const filled = yield* fill(bench, loaded.pacedUrl, settings.backlog, settings.backlogFill)
  yield* progress(`backlog: ${filled.acknowledged} events accepted at ${filled.perSecond.toFixed(0)}/s`)

  const subjects = { reference: plain.subject, gateway: loaded.subject }
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const paced = yield* bench.target.call("report", { run: filled.run })
  const waiting = filled.acknowledged - (paced.distinct[loaded.pacedLane] ?? 0)

  const scenario = "Another destination beside the backlog of a paced one; reference: the same without the backlog"
  const saturated = beside(scenario, measured.saturated)
  const offered = beside(scenario, measured.offered)
  const at = `at ${settings.perSecond}/s`
  return {
    rows: [
      // What the pacing has let through by then is not missing.
      single(scenario, "events waiting at the end", "", waiting, atLeast("value", settings.backlog * 0.99)),
      single(scenario, "accepted while filling", "events/s", filled.perSecond),
      single(scenario, "refused while filling", "", filled.refused, atMost("value", 0)),
      saturated("events delivered, saturated", "events/s", (one) => one.perSecond, atLeast("ratio", 0.9)),
      offered(`sender to target p99 ${at}`, "ms", (one) => one.senderToTarget.p99, atMost("ratio", 1.1)),
      offered(`sender to target p50 ${at}`, "ms", (one) => one.senderToTarget.p50),
      offered(`acknowledge p99 ${at}`, "ms", (one) => one.acknowledge.p99),
      saturated("SQL statements per event, saturated", "", (one) => one.statements),
      saturated("gateway's resident memory, peak", "MB", (one) => one.peakMegabytes, atMost("value", 600)),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway beside the backlog", [
        ...measured.offered.gateway,
        ...measured.saturated.gateway
      ])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)
