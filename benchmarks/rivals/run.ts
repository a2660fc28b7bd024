/**
 * `npm run rivals`: the gateway beside other products that npm has, with the same senders, target and database server, in turn. README.md beside
 * this file says what is measured. Linux only.
 *
 *   --only <names>    with commas between them; others are left out
 *   --rounds <n>      3
 *   --seconds <n>     of each phase (10)
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import type { GeneratorCommands, Sent } from "../src/Generator.ts"
import * as Postgres from "../src/Postgres.ts"
import { busySeconds, processStats, proportionalMemory, together } from "../src/ProcessStats.ts"
import type { TargetCommands } from "../src/Target.ts"
import * as Worker from "../src/Worker.ts"
import { type Product, products, type Running } from "./products.ts"
import { type Figures, type Result, render } from "./Table.ts"

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "10" }
  }
})
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)]
const only = values.only?.split(",")
const chosen = products.filter(({ name }) => only === undefined || only.includes(name))
const unknown = only?.filter((name) => !products.some((product) => product.name === name)) ?? []
if (unknown.length > 0 || !(rounds > 0) || !(seconds > 0)) {
  process.stderr.write(
    `--only takes ${products.map(({ name }) => name).join(", ")}; --rounds and --seconds take numbers\n`
  )
  process.exit(2)
}

/** Low enough that each of them may keep up. */
const perSecond = { events: 100, flow: 20 } as const
const connections = 64
/** What has not come so long after the last request is missing, as is all when nothing has come for the shorter time. */
const [limitMillis, stallMillis] = [60_000, 15_000]
/** What is written behind the answer is paid for. */
const behind = "1500 millis"

interface Bench {
  readonly postgres: Postgres.Postgres
  readonly generator: Worker.Worker<GeneratorCommands>
  readonly target: Worker.Worker<TargetCommands>
  readonly targetPort: number
  readonly home: string
  readonly log: string
}

let lastRun = 0

/** Sends, waits for what was acknowledged, and tells what that took. */
const phase = Effect.fnUntraced(function* (
  { generator, postgres, target }: Bench,
  { processes }: Running,
  send: (run: number) => Effect.Effect<Sent, Worker.WorkerError>
) {
  yield* postgres.checkpoint
  const run = ++lastRun
  const observe = () => ({
    product: together(processes.map(processStats)).cpuSeconds,
    harness: together([generator.pid, target.pid].map(processStats)).cpuSeconds,
    busy: busySeconds(readFileSync("/proc/stat", "latin1")),
    at: performance.now()
  })
  const before = observe()
  const sent = yield* send(run)
  const arrived = yield* target.call("drained", {
    run,
    targetPaths: ["/bench"],
    count: sent.acknowledged,
    stallMillis,
    limitMillis
  })
  yield* Effect.sleep(behind)
  const after = observe()
  const [product, harness] = [after.product - before.product, after.harness - before.harness]
  const others = after.busy - before.busy - product - harness
  return {
    acknowledged: sent.acknowledged,
    refused: sent.refused,
    delivered: arrived.delivered,
    missing: sent.acknowledged - arrived.delivered,
    doubled: arrived.duplicates,
    malformed: arrived.malformed,
    perSecond: arrived.delivered / ((arrived.lastAt - sent.startedAt) / 1e6),
    acknowledgeP50: sent.acknowledge.p50,
    acknowledgeP99: sent.acknowledge.p99,
    targetP50: arrived.latency.p50,
    targetP99: arrived.latency.p99,
    cpuPerThousand: (product / arrived.delivered) * 1_000,
    megabytes: Object.values(proportionalMemory(processes)).reduce((sum, bytes) => sum + bytes, 0) / 1e6,
    othersShare: Math.max(0, others) / (((after.at - before.at) / 1_000) * availableParallelism())
  } satisfies Figures
})

const measure = Effect.fnUntraced(function* (bench: Bench, product: Product, round: number) {
  const home = mkdtempSync(join(bench.home, "product-"))
  const databaseUrl = yield* bench.postgres.database(`${product.name.replaceAll(/\W/g, "_")}_${round}`)
  const running = yield* product.start({
    home,
    databaseUrl,
    postgres: bench.postgres.pid,
    target: `http://127.0.0.1:${bench.targetPort}/bench`,
    log: bench.log
  })
  const saturate = (forSeconds: number) =>
    phase(bench, running, (run) =>
      bench.generator.call("saturate", { urls: [running.url], run, inFlight: connections, seconds: forSeconds })
    )
  const warm = yield* saturate(2)
  if (warm.delivered === 0) return yield* Effect.fail({ message: `nothing was delivered (${warm.refused} refused)` })
  const offered = yield* phase(bench, running, (run) =>
    bench.generator.call("offer", {
      urls: [running.url],
      run,
      perSecond: perSecond[product.load],
      seconds,
      connections
    })
  )
  return { offered, saturated: yield* saturate(seconds) }
})

const bench = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tidegate-rivals-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  )
  const results = join(import.meta.dirname, "../results")
  mkdirSync(results, { recursive: true })
  const stamp = new Date().toISOString().replaceAll(/[:.]/g, "-")
  const file = (end: string) => join(results, `${stamp}-rivals${end}`)
  const postgres = yield* Postgres.start(join(home, "postgres"))
  const target = yield* Worker.start<TargetCommands>("./Target.ts")
  const generator = yield* Worker.start<GeneratorCommands>("./Generator.ts")
  const targetPort = yield* target.call("port", undefined)
  const shared = { postgres, target, generator, targetPort, home, log: file(".log") }

  const found: Array<Result> = []
  const note = [
    `${new Date().toISOString().slice(0, 10)}; ${availableParallelism()} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 1e9)} GB,`,
    `Node ${process.version}, PostgreSQL ${postgres.version}, load ${loadavg()[0]?.toFixed(1)} before. ${rounds} round(s) of ${seconds} s a phase,`,
    `${connections} connections, 1 KB of JSON. Medians (least–most).`
  ].join(" ")
  for (let round = 0; round < rounds; round++) {
    const order = chosen.map((_, at) => chosen[(at + round) % chosen.length]!)
    for (const product of order) {
      const outcome = yield* Effect.scoped(measure(shared, product, round)).pipe(
        Effect.catch((error) => Effect.succeed(error.message))
      )
      found.push({ product, outcome })
      const told = typeof outcome === "string" ? outcome : `${outcome.saturated.perSecond.toFixed()} /s`
      process.stderr.write(`round ${round + 1}, ${product.name}: ${told}\n`)
      // After each, so that a run that is broken off has left what it found.
      writeFileSync(file(".md"), `${note}\n\n${render(found, perSecond)}`)
      writeFileSync(file(".json"), `${JSON.stringify({ note, found }, null, 2)}\n`)
    }
  }
  process.stdout.write(`${note}\n\n${render(found, perSecond)}\n${file(".md")}\n`)
  process.exitCode = found.some(({ outcome }) => typeof outcome === "string") ? 1 : 0
})

NodeRuntime.runMain(Effect.scoped(bench))
