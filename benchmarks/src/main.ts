/**
 * `npm run bench`: compares the gateway with the bare pipeline, on the same PostgreSQL, payloads and target, in one table.
 *
 *   --only <scenario>   throughput, fan-out, backlog, ingress, slow-targets, processes, control, connectors, brokers (with idle-subscriptions), idle-subscriptions, workflows, answers, waiting-runs, flooded-source, flooded-callbacks, neighbours, channels, formatter, memory, dashboard-load, dashboard-list, dashboard-live, dashboard-hour, dashboard-cost, soak, or pipeline (the bare pipeline compared with itself)
 *   --only queries      the time of counts, series and lists over more and more records; --records <n,…>: the numbers of records
 *   --only rows         one row for each kind of work that events can require: rate, latency, CPU, memory
 *   --row <text>        only rows, and kinds of work of neighbours, whose name contains this text
 *   --before <file>     compares the gateway with another version: the module of that version; alone, or with --only rows, control or workflows
 *   --processes <n,…>   the numbers of gateway processes that the scenario processes compares with one (default: 2,4,8)
 *   --minutes <n>       how long dashboard-hour and soak take (default: 60)
 *   --rate <n>          requests a second of soak (default: 1000)
 *   --rounds <n>        the number of rounds of the selected scenarios
 *   --new-connections   senders open a connection for each request (throughput, versions, fan-out, pipeline)
 *   --quick             short phases, to check that everything runs; the verdicts then mean nothing
 *   --gateway <file>    the module to run as the gateway
 *   --telemetry         the gateway sends traces of every request to a collector, and its metrics are scraped
 *   --profile           one round with a CPU profile of every relay, and the functions in which its time was spent
 *
 * The table is written to the terminal, and with all figures as Markdown and JSON to `benchmarks/results/`. The exit code is 1
 * if a requirement is not met.
 */
import { existsSync } from "node:fs"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from "node:os"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { GeneratorCommands } from "./Generator.ts"
import type { Bench } from "./Measurement.ts"
import * as Matrix from "./Matrix.ts"
import * as Postgres from "./Postgres.ts"
import { type Outcome, type Plan, fullSettings, quickSettings } from "./Comparison.ts"
import { brokers } from "./Brokers.ts"
import { channels } from "./Channels.ts"
import { connectors } from "./Connectors.ts"
import { control } from "./Control.ts"
import { dashboardCost } from "./dashboard/Cost.ts"
import { dashboardHour, dashboardLive } from "./dashboard/Live.ts"
import { dashboardLoad } from "./dashboard/Load.ts"
import { dashboardList } from "./dashboard/Scrolled.ts"
import { floodedCallbacks } from "./FloodedCallbacks.ts"
import { floodedSource } from "./FloodedSource.ts"
import { neighbours } from "./Neighbours.ts"
import { formatter } from "./Formatter.ts"
import { idleSubscriptions } from "./IdleSubscriptions.ts"
import { ingressModes } from "./IngressModes.ts"
import { memory } from "./Memory.ts"
import { processes } from "./Processes.ts"
import { queries } from "./Queries.ts"
import { readProfile, renderSelfTimes } from "./Profile.ts"
import { renderMarkdown, renderText } from "./Report.ts"
import { rows as allRows } from "./rows/list.ts"
import { runRow } from "./rows/Run.ts"
import * as Table from "./rows/Table.ts"
import * as Scenarios from "./Scenarios.ts"
import { slowTargets } from "./SlowTargets.ts"
import { soak } from "./Soak.ts"
import type { TargetCommands } from "./Target.ts"
import * as Telemetry from "./Telemetry.ts"
import * as Worker from "./Worker.ts"
import { waitingRuns } from "./WaitingRuns.ts"
import { workflowAnswers } from "./WorkflowAnswers.ts"
import { workflows } from "./Workflows.ts"
import { workflowVersions } from "./WorkflowVersions.ts"

const scenarios = {
  throughput: Scenarios.throughput,
  "fan-out": Scenarios.fanOut,
  backlog: Scenarios.backlog,
  ingress: ingressModes,
  "slow-targets": slowTargets,
  memory,
  processes,
  control,
  connectors,
  brokers,
  "idle-subscriptions": idleSubscriptions,
  workflows: (plan: Plan) => (plan.beforeEntry === plan.gatewayEntry ? workflows(plan) : workflowVersions(plan)),
  answers: workflowAnswers,
  "waiting-runs": waitingRuns,
  "flooded-source": floodedSource,
  "flooded-callbacks": floodedCallbacks,
  neighbours,
  channels,
  formatter,
  queries,
  "dashboard-load": dashboardLoad,
  "dashboard-list": dashboardList,
  "dashboard-live": dashboardLive,
  "dashboard-hour": dashboardHour,
  "dashboard-cost": dashboardCost,
  soak,
  versions: Scenarios.versions,
  pipeline: Scenarios.pipeline
}
type Name = keyof typeof scenarios | "rows"
const isName = (name: string): name is Name => name === "rows" || Object.hasOwn(scenarios, name)

/** A scenario or a row. Results so far are shown, even if the next one fails. */
interface Run {
  readonly name: Name
  readonly run: (plan: Plan) => Effect.Effect<Outcome, { readonly message: string }>
}

/** Default rounds of the rows, because there are many rows. */
const ROUNDS_OF_ROWS = 2

/** The whole benchmark stops after this time (s); finished scenarios are shown. The minutes of dashboard-hour and soak come on top. */
const DEADLINE = 1_100

/** A phase in which other processes used more cores than this is marked, because its figures mean little. */
const DISTURBED = 0.1

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      row: { type: "string", default: "" },
      before: { type: "string" },
      rounds: { type: "string" },
      processes: { type: "string" },
      minutes: { type: "string", default: "60" },
      rate: { type: "string" },
      records: { type: "string" },
      "new-connections": { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      telemetry: { type: "boolean", default: false },
      gateway: { type: "string", default: path("../../apps/gateway/dist/main.mjs") }
    }
  })
  const only = values.only ?? (values.before === undefined ? undefined : "versions")
  if (only !== undefined && !isName(only)) {
    throw new Error(`--only takes one of ${Object.keys(scenarios).join(", ")}, rows`)
  }
  const eitherWay = only === "rows" || only === "control" || only === "workflows"
  if (!eitherWay && (only === "versions") !== (values.before !== undefined)) {
    throw new Error(
      "--before names the other version's gateway, for the scenarios versions, rows, control and workflows and no other"
    )
  }
  const rounds = values.profile ? 1 : values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))
    throw new Error("--rounds takes a number from 1")
  const names: ReadonlyArray<Name> =
    only !== undefined
      ? only === "brokers"
        ? ["brokers", "idle-subscriptions"]
        : [only]
      : values.profile
        ? ["throughput"]
        : ["throughput", "fan-out", "backlog", "ingress", "slow-targets", "control"]
  const gateway = resolve(values.gateway)
  const before = resolve(values.before ?? gateway)
  const missing = names.includes("pipeline") ? undefined : [gateway, before].find((entry) => !existsSync(entry))
  if (missing !== undefined) throw new Error(`there is no gateway at ${missing}`)
  if (process.platform !== "linux")
    throw new Error("CPU and memory are read from /proc: the benchmarks run on Linux only")
  const settings = values.quick ? quickSettings : fullSettings
  // The others are compared with one process.
  const several = values.processes
    ?.split(",")
    .map(Number)
    .filter((count) => count !== 1)
  if (several?.some((count) => !(Number.isInteger(count) && count > 0))) {
    throw new Error("--processes takes numbers from 1, with commas between them")
  }
  const minutes = Number(values.minutes)
  if (!(Number.isInteger(minutes) && minutes > 0 && minutes <= 1_440))
    throw new Error("--minutes takes a number from 1 to 1440")
  const rate = values.rate === undefined ? undefined : Number(values.rate)
  if (rate !== undefined && !(only === "soak" && Number.isInteger(rate) && rate > 0))
    throw new Error("--rate takes a number from 1, and goes with --only soak")
  const records = values.records?.split(",").map(Number)
  if (records?.some((count) => !(Number.isInteger(count) && count >= 10_000))) {
    throw new Error("--records takes numbers from 10000, with commas between them")
  }
  return {
    names,
    gateway,
    before,
    quick: values.quick,
    profile: values.profile,
    telemetry: values.telemetry,
    row: values.row,
    settings: {
      ...settings,
      newConnections: values["new-connections"],
      minutes,
      ...(only === "rows" && { rounds: Math.min(ROUNDS_OF_ROWS, settings.rounds) }),
      ...(rounds !== undefined && { rounds }),
      ...(several !== undefined && { processes: several }),
      ...(rate !== undefined && { perSecond: rate }),
      ...(records !== undefined && { records })
    }
  }
}

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "tidegate-bench-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

const bench = Effect.gen(function* () {
  const options = yield* Effect.try({
    try: readOptions,
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  })
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-")
  const results = path("../results")
  const profiles = join(results, `${stamp}-profiles`)
  yield* Effect.promise(() => mkdir(results, { recursive: true }))

  const outcomes: Array<Outcome & { readonly name: Name }> = []
  const started = performance.now()
  const progress = (line: string) =>
    Console.error(`${((performance.now() - started) / 1000).toFixed(0).padStart(4)} s  ${line}`)
  const profiled: Array<string> = []

  const run = Effect.scoped(
    Effect.gen(function* () {
      const home = yield* temporaryDirectory
      const postgres = yield* Postgres.start(join(home, "postgres"))
      const target = yield* Worker.start<TargetCommands>("./Target.ts")
      const generator = yield* Worker.start<GeneratorCommands>("./Generator.ts")
      const targetOrigin = `http://127.0.0.1:${yield* target.call("port", undefined)}`
      const collector = options.telemetry ? yield* Telemetry.collector : null
      let lastRun = 0
      const measuring: Bench = {
        postgres,
        target,
        generator,
        targetOrigin,
        settleMillis: 300,
        nextRun: () => ++lastRun
      }
      yield* progress(`PostgreSQL ${postgres.version}, Node ${process.version}, load ${loadavg()[0]?.toFixed(2)}`)
      const runs = options.names.flatMap((name): ReadonlyArray<Run> =>
        name !== "rows"
          ? [{ name, run: scenarios[name] }]
          : allRows
              .filter((row) => row.name.includes(options.row))
              .map((row, index) => ({ name, run: runRow(row, index) }))
      )
      for (const { name, run } of runs) {
        const outcome = yield* run({
          bench: measuring,
          settings: options.settings,
          gatewayEntry: options.gateway,
          beforeEntry: options.before,
          home,
          collector,
          row: options.row,
          log: join(results, `${stamp}-gateway.log`),
          execArgv: (subject) => {
            if (!options.profile) return []
            profiled.push(join(profiles, `${subject}.cpuprofile`))
            return ["--cpu-prof", `--cpu-prof-dir=${profiles}`, `--cpu-prof-name=${subject}.cpuprofile`]
          },
          progress
        })
        outcomes.push({ name, ...outcome })
      }
      return postgres.version
    })
  )
  const isLong = options.names.includes("dashboard-hour") || options.names.includes("soak")
  const deadline = DEADLINE + (isLong ? options.settings.minutes * 60 : 0)
  const failure = yield* run.pipe(
    Effect.as(null),
    Effect.timeoutOrElse({
      duration: deadline * 1_000,
      orElse: () => Effect.succeed(`stopped after ${deadline} seconds`)
    }),
    Effect.catch((error) => Effect.succeed(error.message))
  )

  const rows = outcomes.flatMap((outcome) => outcome.rows)
  const lines = outcomes.flatMap((outcome) => outcome.lines ?? [])
  const listed = outcomes.flatMap(({ layout, ...outcome }) => (layout === "matrix" ? [] : outcome.rows))
  const crossed = outcomes.filter(({ layout }) => layout === "matrix")
  const tables = (of: {
    readonly rows: typeof renderText
    readonly lines: typeof Table.renderText
    readonly matrix: typeof Matrix.renderText
  }): string =>
    [
      ...(lines.length > 0 ? [of.lines(lines)] : []),
      ...(listed.length > 0 ? [of.rows(listed)] : []),
      ...crossed.map((outcome) => of.matrix(outcome.rows))
    ].join("\n\n")
  const machine = `${availableParallelism()} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 1e9)} GB`
  const phases = outcomes.flatMap(({ measured }) =>
    [measured.offered, measured.saturated].flatMap(({ reference, gateway }) => reference.concat(gateway))
  )
  const disturbed = phases.filter((phase) => phase.otherCores > DISTURBED).length
  const note = [
    `${machine}, Node ${process.version}. Generator, relay, PostgreSQL and target share the machine.`,
    `Figures are medians of ${options.settings.rounds} rounds; ratios are taken within each round.`,
    ...(disturbed === 0
      ? []
      : [`In ${disturbed} of ${phases.length} phases other processes took more than ${DISTURBED} cores.`]),
    ...(options.quick ? ["Quick run: the figures mean little."] : [])
  ].join(" ")
  const files = [join(results, `${stamp}.md`), join(results, `${stamp}.json`)] as const
  yield* Effect.promise(() =>
    Promise.all([
      writeFile(
        files[0],
        `${note}\n\n${tables({ rows: renderMarkdown, lines: Table.renderMarkdown, matrix: Matrix.renderMarkdown })}\n`
      ),
      writeFile(
        files[1],
        `${JSON.stringify({ machine, node: process.version, options, failure, rows, outcomes }, null, 2)}\n`
      )
    ])
  )
  yield* Console.log(
    `${tables({ rows: renderText, lines: Table.renderText, matrix: Matrix.renderText })}\n\n${note}\n${files.join("\n")}`
  )
  for (const profile of profiled) {
    yield* Console.log(
      existsSync(profile)
        ? `\n${profile}\n${renderSelfTimes(readProfile(profile), 25)}`
        : `\n${profile} was not written: the process did not end by itself`
    )
  }
  if (failure !== null) yield* Console.error(`\nnot complete: ${failure}`)
  const failed = [...rows, ...lines].filter(({ holds }) => holds === false)
  process.exitCode = failure !== null || (failed.length > 0 && !options.quick) ? 1 : 0
})

NodeRuntime.runMain(
  bench.pipe(
    Effect.catch((message) =>
      Effect.andThen(
        Console.error(message),
        Effect.sync(() => {
          process.exitCode = 2
        })
      )
    )
  )
)
