/**
 * How two subjects are compared: both run at the same time and are loaded one after the other. Ratios are computed between
 * neighbouring phases, because the speed of a shared machine drifts by the minute.
 */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Gateway from "./Gateway.ts"
import { type Bench, type Measurement, offer, saturate, type Subject } from "./Measurement.ts"
import type { PipelineCommands } from "./Pipeline.ts"
import { makeRow, type Requirement, type Row } from "./Report.ts"
import type { Line } from "./rows/Table.ts"
import * as Worker from "./Worker.ts"

/** Sizes of a run. Times are in seconds. */
export interface Settings {
  readonly rounds: number
  /** Saturation of each subject before its first phase. */
  readonly warmUp: number
  /** The start of each phase, which is not measured. */
  readonly leadIn: number
  readonly saturated: number
  readonly offered: number
  readonly perSecond: number
  readonly backlog: number
  /** The longest time for filling the backlog. */
  readonly backlogFill: number
  /** How many gateway processes the scenario `processes` compares with one. */
  readonly processes: ReadonlyArray<number>
  /** The numbers of records over which the scenario `queries` measures, one after the other. */
  readonly records: ReadonlyArray<number>
  /** How long the scenario `dashboard-hour` watches the page. */
  readonly minutes: number
  /** Whether senders open a connection for each request. */
  readonly newConnections: boolean
  /** The part of the rates and numbers of destinations that the scenario `slow-targets` has by itself, up to 1. */
  readonly slowTargets: number
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
  backlogFill: 200,
  processes: [2, 4, 8],
  records: [100_000, 1_000_000, 5_000_000],
  minutes: 60,
  newConnections: false,
  slowTargets: 1
}

/** Only checks that everything runs; the figures mean little. */
export const quickSettings: Settings = {
  ...fullSettings,
  rounds: 1,
  warmUp: 2,
  saturated: 2,
  offered: 2,
  backlog: 10_000,
  backlogFill: 20,
  processes: [2],
  records: [20_000]
}

/** The inputs of scenarios besides the bench: sizes, the gateway's module, the folder for files, and the progress output. */
export interface Plan {
  readonly bench: Bench
  readonly settings: Settings
  readonly gatewayEntry: string
  /** The module of the version that `versions` compares with. */
  readonly beforeEntry: string
  readonly home: string
  readonly log: string
  /** The collector that gateways send their telemetry to; null: telemetry is off. */
  readonly collector: string | null
  /** Only what has this text in its name is measured, in the scenarios `rows` and `neighbours`. */
  readonly row: string
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

/** The figures of one scenario: rows for the table, and all measurements. */
export interface Outcome {
  readonly rows: ReadonlyArray<Row>
  /** How the rows are shown: as a list, or with a line for each scenario and a column for each measure. Default: as a list. */
  readonly layout?: "list" | "matrix"
  /** The lines of the other table, which the scenario `rows` has. */
  readonly lines?: ReadonlyArray<Line>
  readonly measured: Readonly<Record<Load, Sides>>
}

export const atLeast = (of: Requirement["of"], bound: number): Requirement => ({ of, atLeast: bound })
export const atMost = (of: Requirement["of"], bound: number): Requirement => ({ of, atMost: bound })

export const startPipeline = Effect.fnUntraced(function* (plan: Plan, name: string) {
  const { bench } = plan
  const databaseUrl = yield* bench.postgres.database(name)
  const worker = yield* Worker.start<PipelineCommands>("./Pipeline.ts", plan.execArgv(name))
  const targetPath = `/${name}`
  const { url } = yield* worker.call("start", { databaseUrl, targetUrl: `${bench.targetOrigin}${targetPath}` })
  return { pid: worker.pid, database: name, url, targetPaths: [targetPath] } satisfies Subject
})

export const startGateway = Effect.fnUntraced(function* (plan: Plan, name: string) {
  return yield* startProcess(plan, name, yield* plan.bench.postgres.database(name), name)
})

/** The home folder of the gateway of that name. */
export const homeOf = (plan: Plan, gateway: string): string => join(plan.home, gateway)

/**
 * Starts one process of the gateway `gateway`. All processes of a gateway have their keys in the same folder. Without a URL it uses the
 * embedded server of that folder. `env`: its additional variables.
 */
export const startProcess = (
  plan: Plan,
  gateway: string,
  databaseUrl: string | null,
  name: string,
  env: Readonly<Record<string, string>> = {}
) =>
  Gateway.start({
    entry: plan.gatewayEntry,
    databaseUrl,
    home: homeOf(plan, gateway),
    log: plan.log,
    execArgv: plan.execArgv(name),
    collector: plan.collector,
    env
  })

/** A gateway with one source and the given number of connections, each to its own path of the target. */
export const gatewayWith = Effect.fnUntraced(function* (
  plan: Plan,
  name: string,
  connections: number,
  rules: ReadonlyArray<object>,
  source: object = {}
) {
  const gateway = yield* startGateway(plan, name)
  const targetPaths = Array.from({ length: connections }, (_, index) => `/${name}-${index}`)
  const destinations = targetPaths.map((targetPath) => ({ url: `${plan.bench.targetOrigin}${targetPath}` }))
  const url = yield* gateway.route({ name, destinations, rules, source })
  return { pid: gateway.pid, database: name, url, targetPaths } satisfies Subject
})

const summary = (what: string, found: Measurement): string =>
  `${what}: ${found.perSecond.toFixed(0)}/s, acknowledge p50 ${found.acknowledge.p50.toFixed(1)} ms p99 ` +
  `${found.acknowledge.p99.toFixed(1)} ms, to target p50 ${found.senderToTarget.p50.toFixed(1)} ms p99 ` +
  `${found.senderToTarget.p99.toFixed(1)} ms, other processes ${found.otherCores.toFixed(2)} cores` +
  (found.refusal === null ? "" : `, ${found.refused} refused: ${found.refusal}`)

export const warmUp = (plan: Plan, subject: Subject) =>
  saturate(plan.bench, subject, { leadIn: 0, seconds: plan.settings.warmUp })

/** Loads both subjects one after the other, and changes their order in every other round, so that a drift favours neither. */
export const alternate = Effect.fnUntraced(function* (
  plan: Plan,
  subjects: Readonly<Record<keyof Sides, Subject>>,
  loads: ReadonlyArray<Load>
) {
  const { bench, settings, progress } = plan
  const { leadIn, newConnections, offered, perSecond, saturated } = settings
  const sides = (): Record<keyof Sides, Array<Measurement>> => ({ reference: [], gateway: [] })
  const measured: Record<Load, ReturnType<typeof sides>> = { offered: sides(), saturated: sides() }
  for (let round = 0; round < settings.rounds; round++) {
    const order = round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)
    for (const load of loads) {
      for (const side of order) {
        const found = yield* load === "offered"
          ? offer(bench, subjects[side], { leadIn, seconds: offered, perSecond, newConnections })
          : saturate(bench, subjects[side], { leadIn, seconds: saturated, newConnections })
        measured[load][side].push(found)
        yield* progress(summary(`${subjects[side].database} ${load}`, found))
      }
    }
  }
  return measured
})

/** Makes rows of one scenario from both sides' measurements. */
export const beside =
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
export const single = (scenario: string, measure: string, unit: string, figure: number, required?: Requirement): Row =>
  makeRow({ scenario, measure, unit, gateway: [figure], ...(required && { required }) })

/** Refused requests, missing deliveries and changed bodies. If one of these is not zero, the other figures do not count. */
export const faults = (scenario: string, found: ReadonlyArray<Measurement>): ReadonlyArray<Row> => {
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

export const relayAndPostgres = (one: Measurement): number => one.cpu.subject + one.cpu.postgres
