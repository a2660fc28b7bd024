import { describe, expect, layer } from "@effect/vitest"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { temporaryFolder } from "../../test/temporaryFolder.ts"
import type { GeneratorCommands } from "../src/Generator.ts"
import type { Bench } from "../src/Measurement.ts"
import type { PipelineCommands } from "../src/Pipeline.ts"
import * as Postgres from "../src/Postgres.ts"
import type { Plan, Settings } from "../src/Comparison.ts"
import { ingressModes } from "../src/IngressModes.ts"
import { complete, limitedTo, type Row } from "../src/rows/Row.ts"
import { runRow } from "../src/rows/Run.ts"
import { renderText } from "../src/rows/Table.ts"
import * as Scenarios from "../src/Scenarios.ts"
import { slowTargets } from "../src/SlowTargets.ts"
import type { TargetCommands } from "../src/Target.ts"
import * as Worker from "../src/Worker.ts"

class Fixture extends Context.Service<Fixture, { readonly home: string; readonly bench: Bench }>()(
  "benchmarks/test/Fixture"
) {
  static readonly layer = Layer.effect(
    Fixture,
    Effect.gen(function* () {
      // In memory, where nothing waits for a disk: what the suite is about does not depend on its speed.
      const home = yield* temporaryFolder
      const postgres = yield* Postgres.start(join(home, "postgres"))
      const target = yield* Worker.start<TargetCommands>("./Target.ts")
      const generator = yield* Worker.start<GeneratorCommands>("./Generator.ts")
      const targetOrigin = `http://127.0.0.1:${yield* target.call("port", undefined)}`
      let lastRun = 0
      return { home, bench: { postgres, target, generator, targetOrigin, settleMillis: 0, nextRun: () => ++lastRun } }
    })
  )
}

const settings: Settings = {
  rounds: 1,
  warmUp: 0.05,
  leadIn: 0,
  saturated: 0.1,
  offered: 0.2,
  perSecond: 200,
  backlog: 50,
  backlogFill: 5,
  processes: [2],
  records: [],
  minutes: 1,
  newConnections: false,
  // The gateway below has 32 connections to a target, and one machine runs all of it.
  slowTargets: 1 / 20
}

describe.runIf(process.platform === "linux")("Benchmark scenarios with a PostgreSQL server", () => {
  layer(Fixture.layer, { excludeTestServices: true })((it) => {
    it.effect("Reference pipeline stores, delivers and records every event with few statements", () =>
      Effect.gen(function* () {
        const { bench } = yield* Fixture
        const databaseUrl = yield* bench.postgres.database("stored")
        const pipeline = yield* Worker.start<PipelineCommands>("./Pipeline.ts")
        const { url } = yield* pipeline.call("start", { databaseUrl, targetUrl: `${bench.targetOrigin}/stored` })
        const run = bench.nextRun()
        const before = yield* bench.postgres.statements("stored")
        const sent = yield* bench.generator.call("saturate", {
          urls: [url],
          run,
          inFlight: 50,
          seconds: 300,
          count: 1_000
        })
        expect(sent).toMatchObject({ acknowledged: 1_000, refused: 0 })
        const patience = { stallMillis: 60_000, limitMillis: 60_000 }
        const arrived = yield* bench.target.call("drained", {
          run,
          targetPaths: ["/stored"],
          count: 1_000,
          ...patience
        })
        expect(arrived).toMatchObject({ delivered: 1_000, duplicates: 0, malformed: 0 })

        const statements = (yield* bench.postgres.statements("stored")) - before
        expect(statements).toBeGreaterThan(1)
        expect(statements).toBeLessThan(1_000)
        const connection = yield* PgConnection.make({ url: Redacted.make(databaseUrl) })
        const rows = connection.queryValues(
          `SELECT (SELECT count(*) FROM requests WHERE length(body) = 1024),
             (SELECT count(*) FROM events WHERE status = 'SUCCESSFUL' AND attempts = 1),
             (SELECT count(*) FROM attempts WHERE response_status = 200)`
        )
        // The last attempts are committed after their delivery.
        const stored = yield* rows.pipe(
          Effect.map(([row]) => row?.map(Number)),
          Effect.repeat({ until: (counts) => counts?.[2] === 1_000 }),
          Effect.timeout("60 seconds")
        )
        expect(stored).toStrictEqual([1_000, 1_000, 1_000])
      })
    )

    it.effect("Benchmark scenarios measure a gateway that keeps to the contract", () =>
      Effect.gen(function* () {
        const { bench, home } = yield* Fixture
        const lines: Array<string> = []
        const plan: Plan = {
          bench,
          settings,
          gatewayEntry: fileURLToPath(new URL("FakeGateway.ts", import.meta.url)),
          beforeEntry: fileURLToPath(new URL("FakeGateway.ts", import.meta.url)),
          home,
          log: join(home, "gateway.log"),
          execArgv: () => [],
          collector: null,
          row: "",
          progress: (line) => Effect.sync(() => void lines.push(line))
        }
        const throughput = yield* Scenarios.throughput(plan)
        const faults = throughput.rows.filter((row) => row.scenario.startsWith("Faults"))
        expect(faults.length > 0 && faults.every((row) => row.gateway === 0)).toBe(true)
        expect(throughput.measured.offered.gateway[0]).toMatchObject({ delivered: 40, statements: 0 })
        expect(throughput.measured.offered.reference[0]?.statements ?? 0).toBeGreaterThan(0)

        const fanOut = yield* Scenarios.fanOut(plan)
        expect(fanOut.measured.saturated.gateway.length).toBe(1)
        for (const three of fanOut.measured.saturated.gateway) {
          expect(three.acknowledged).toBeGreaterThan(0)
          expect(three).toMatchObject({ delivered: 3 * three.acknowledged, missing: 0 })
        }

        const backlog = yield* Scenarios.backlog(plan)
        const waiting = backlog.rows.find((row) => row.measure === "events waiting at the end")
        expect(waiting?.gateway ?? 0).toBeGreaterThan(30)
        expect(waiting?.gateway ?? 0).toBeLessThanOrEqual(50)
        expect(backlog.measured.offered.gateway[0]?.missing).toBe(0)
        expect(lines.length).toBeGreaterThan(0)

        const versions = yield* Scenarios.versions(plan)
        expect(versions.measured.saturated.reference.length).toBe(1)
        expect(versions.measured.offered.reference.every((one) => one.delivered > 0 && one.missing === 0)).toBe(true)

        const modes = yield* ingressModes(plan)
        expect(modes.measured.offered.gateway.length).toBe(4)
        expect(modes.measured.offered.gateway.every((one) => one.delivered > 0 && one.missing === 0)).toBe(true)
        expect(modes.rows.filter((row) => row.measure === "CPU per event beyond one without").length).toBe(8)

        const slow = yield* slowTargets(plan)
        expect(slow.measured.offered.gateway.length).toBe(3)
        for (const one of slow.measured.offered.gateway) {
          expect(one).toMatchObject({ missing: 0, duplicates: 0 })
          expect(one.senderToTarget.p50).toBeGreaterThanOrEqual(200)
        }
      })
    )

    it.effect("Benchmark row measures both versions and has no value for what a version cannot do", () =>
      Effect.gen(function* () {
        const { bench, home } = yield* Fixture
        const gatewayEntry = fileURLToPath(new URL("FakeGateway.ts", import.meta.url))
        const plan: Plan = {
          bench,
          settings: { ...settings, rounds: 2 },
          gatewayEntry,
          beforeEntry: gatewayEntry.replace("/FakeGateway.ts", "/./FakeGateway.ts"),
          home,
          log: join(home, "gateway.log"),
          execArgv: () => [],
          collector: null,
          row: "",
          progress: () => Effect.void
        }
        const several: Row = { name: "several", loads: ["saturated", 50], must: complete, sources: 3, destinations: 2 }
        const outcome = yield* runRow(several, 900)(plan)
        expect(outcome.lines.map(({ holds, load, version }) => ({ holds, load, version }))).toStrictEqual(
          ["saturated", "50 requests/s"].flatMap((load) => [
            { holds: null, load, version: "before" },
            { holds: true, load, version: "now" },
            { holds: null, load, version: "ratio" }
          ])
        )
        expect(outcome.measured.saturated.gateway.length).toBe(2)
        for (const one of outcome.measured.offered.gateway) expect(one).toMatchObject({ missing: 0, delivered: 10 })

        const beside: Row = { ...several, name: "beside", loads: [50], beside: [{ perSecond: 50, rules: [] }] }
        const alone = yield* runRow(beside, 901)(plan)
        expect(alone.measured.offered.gateway.map(({ delivered }) => delivered)).toStrictEqual([10, 10])

        const unknown: Row = { ...several, name: "unknown", connection: { ordering: { key: "body.customer.id" } } }
        const line = (yield* runRow(unknown, 902)(plan)).lines.find(({ version }) => version === "now")
        expect(line).toMatchObject({ holds: null, remark: "cannot: it does not know ordering of connections" })
        expect(line?.cells.every((cell) => cell === "")).toBe(true)

        const waiting: Row = { name: "waiting", loads: ["waiting"], must: complete, destinations: 2, waiting: 30 }
        const resumed = yield* runRow(waiting, 904)(plan)
        expect(resumed.measured.saturated.gateway.length).toBe(2)
        for (const one of resumed.measured.saturated.gateway) {
          expect(one).toMatchObject({ acknowledged: 30, delivered: 60, missing: 0 })
        }

        // Nothing limits it.
        const limited: Row = { name: "limited", loads: [50], must: limitedTo(1), isFresh: true }
        const failing = (yield* runRow(limited, 903)(plan)).lines.find(({ version }) => version === "now")
        expect(failing).toMatchObject({ holds: false, remark: expect.stringContaining("none refused") })
        expect(renderText([failing!])).toContain("FAIL")
      })
    )

    it.effect("Call to a benchmark worker that dies fails instead of waiting", () =>
      Effect.gen(function* () {
        const worker = yield* Worker.start<TargetCommands>("./Target.ts")
        yield* worker.call("port", undefined)
        const waiting = { run: 1, targetPaths: ["/none"], count: 1, stallMillis: 60_000, limitMillis: 60_000 }
        const [failure] = yield* Effect.all(
          [Effect.flip(worker.call("drained", waiting)), Effect.sync(() => process.kill(worker.pid, "SIGKILL"))],
          { concurrency: "unbounded" }
        )
        expect(failure._tag).toBe("WorkerError")
        expect(failure.message).toMatch(/SIGKILL/)
      })
    )
  })
})
