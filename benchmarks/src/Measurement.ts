/**
 * The two ways of loading a subject, and what is read off it while it is loaded. Both are the same for the bare pipeline
 * and for the gateway.
 */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { GeneratorCommands, Sent } from "./Generator.ts"
import type { Postgres } from "./Postgres.ts"
import { busySeconds, processStats, proportionalMemory, together } from "./ProcessStats.ts"
import type { TargetCommands } from "./Target.ts"
import type { Worker, WorkerError } from "./Worker.ts"

/** What all measurements share. */
export interface Bench {
  readonly postgres: Postgres
  readonly target: Worker<TargetCommands>
  readonly targetOrigin: string
  readonly generator: Worker<GeneratorCommands>
  /** Time after the last delivery in which the commits that record it are surely done. */
  readonly settleMillis: number
  /** A run number no measurement has used yet; runs keep late arrivals of one phase out of the next. */
  readonly nextRun: () => number
}

/** What is measured: a relay that delivers each event posted to `url` to every lane of the target. */
export interface Subject {
  readonly pid: number
  readonly database: string
  readonly url: string
  readonly lanes: ReadonlyArray<string>
  /** Where it is several processes: the others, whose CPU and memory count as its own. */
  readonly others?: ReadonlyArray<number>
  /** Where requests go to several addresses in turn: the others. */
  readonly otherUrls?: ReadonlyArray<string>
}

/** One measured phase. An event is one routed delivery: with three connections one request makes three. */
export interface Measurement {
  /** Distinct deliveries per second, from the first send to the last delivery. */
  readonly perSecond: number
  readonly acknowledged: number
  readonly delivered: number
  /** Deliveries owed for acknowledged requests that had not come when waiting for them ended. */
  readonly missing: number
  readonly duplicates: number
  readonly malformed: number
  /** Deliveries before which something later about the same customer came; it says something where `Phase.customers` is set. */
  readonly inversions: number
  readonly refused: number
  /** Those of them that were 429 with Retry-After. */
  readonly limited: number
  readonly refusal: string | null
  /** Milliseconds from the intended send time to the acknowledgement, and to the first arrival at the target. */
  readonly acknowledge: Sent["acknowledge"]
  readonly senderToTarget: Sent["acknowledge"]
  /** SQL statements per delivery. */
  readonly statements: number
  /** CPU seconds per 1,000 deliveries. */
  readonly cpu: {
    readonly subject: number
    readonly postgres: number
    readonly generator: number
    readonly target: number
  }
  /** CPU seconds in all. */
  readonly seconds: { readonly gateway: number; readonly sandbox: number; readonly postgres: number }
  /** Seconds from the first send to the last answer. */
  readonly sending: number
  /** CPU cores that the benchmark's processes did not get meanwhile: figures of a disturbed phase say little. */
  readonly otherCores: number
  /** The subject's memory in megabytes: at the end, and the highest of its main process so far. */
  readonly residentMegabytes: number
  readonly peakMegabytes: number
  /** The same at the end, with what processes share divided among them. */
  readonly megabytes: { readonly gateway: number; readonly sandbox: number }
}

/** Length of a phase in seconds: what comes first and is not measured, and what is. */
export interface Phase {
  readonly leadIn: number
  readonly seconds: number
  /** Requests in flight at saturation. */
  readonly inFlight?: number
  /** Customers that the events are about, when those of one are to be sent one after the other. */
  readonly customers?: number
}

/** Requests in flight at saturation, where nothing else is said. */
const IN_FLIGHT = 100
/** After the last send: without a delivery for so long, or after the limit, what is still owed counts as missing. */
const STALL_MILLIS = 10_000
const LIMIT_MILLIS = 60_000

const urlsOf = ({ otherUrls = [], url }: Subject): ReadonlyArray<string> => [url, ...otherUrls]

/** Sends one part of a phase and waits until it is delivered. */
const sendAndDrain = Effect.fnUntraced(function* (
  bench: Bench,
  subject: Subject,
  send: (run: number) => Effect.Effect<Sent, WorkerError>
) {
  const run = bench.nextRun()
  const sent = yield* send(run)
  const arrived = yield* bench.target.call("drained", {
    run,
    lanes: subject.lanes,
    count: sent.acknowledged,
    stallMillis: STALL_MILLIS,
    limitMillis: LIMIT_MILLIS
  })
  yield* Effect.sleep(bench.settleMillis)
  return { sent, arrived }
})

/**
 * One phase. Its start is not measured: it opens connections, brings code and pages back into the caches after another
 * subject had them, and takes the full-page writes that follow the checkpoint.
 */
const measure = Effect.fnUntraced(function* (
  bench: Bench,
  subject: Subject,
  phase: Phase,
  send: (run: number, seconds: number) => Effect.Effect<Sent, WorkerError>
): Effect.fn.Return<Measurement, SqlError | WorkerError> {
  yield* bench.postgres.checkpoint
  if (phase.leadIn > 0) yield* sendAndDrain(bench, subject, (run) => send(run, phase.leadIn))
  const pids = [subject.pid, ...(subject.others ?? [])]
  const observe = Effect.gen(function* () {
    const statements = yield* bench.postgres.statements(subject.database)
    return {
      statements,
      busy: busySeconds(readFileSync("/proc/stat", "latin1")),
      subject: together(pids.map(processStats)),
      postgres: processStats(bench.postgres.pid),
      generator: processStats(bench.generator.pid),
      target: processStats(bench.target.pid),
      at: performance.now()
    }
  })
  const before = yield* observe
  const { sent, arrived } = yield* sendAndDrain(bench, subject, (run) => send(run, phase.seconds))
  const after = yield* observe
  const memory = proportionalMemory(pids)

  const cpu = (part: "subject" | "postgres" | "generator" | "target") =>
    after[part].cpuSeconds - before[part].cpuSeconds
  const perThousand = (seconds: number) => (seconds / arrived.delivered) * 1000
  const sandbox = after.subject.childSeconds - before.subject.childSeconds
  const own = cpu("subject") + cpu("postgres") + cpu("generator") + cpu("target")
  return {
    perSecond: (arrived.delivered / (arrived.lastAt - sent.startedAt)) * 1_000_000,
    acknowledged: sent.acknowledged,
    delivered: arrived.delivered,
    missing: subject.lanes.reduce(
      (sum, lane) => sum + Math.max(0, sent.acknowledged - (arrived.distinct[lane] ?? 0)),
      0
    ),
    duplicates: arrived.duplicates,
    malformed: arrived.malformed,
    inversions: arrived.inversions,
    refused: sent.refused,
    limited: sent.limited,
    refusal: sent.refusal,
    acknowledge: sent.acknowledge,
    senderToTarget: arrived.latency,
    statements: (after.statements - before.statements) / arrived.delivered,
    cpu: {
      subject: perThousand(cpu("subject")),
      postgres: perThousand(cpu("postgres")),
      generator: perThousand(cpu("generator")),
      target: perThousand(cpu("target"))
    },
    seconds: { gateway: cpu("subject") - sandbox, sandbox, postgres: cpu("postgres") },
    sending: (sent.endedAt - sent.startedAt) / 1_000_000,
    otherCores: Math.max(0, (after.busy - before.busy - own) / ((after.at - before.at) / 1000)),
    residentMegabytes: after.subject.residentBytes / 1e6,
    peakMegabytes: after.subject.peakBytes / 1e6,
    megabytes: { gateway: memory.root / 1e6, sandbox: memory.children / 1e6 }
  }
})

/**
 * Saturated end to end: a closed loop of 100 requests in flight sends for `seconds` as fast as it is acknowledged; the
 * rate counts from the first send to the last delivery, so a backlog built up meanwhile is paid for.
 */
export const saturate = (bench: Bench, subject: Subject, phase: Phase) =>
  measure(bench, subject, phase, (run, seconds) =>
    bench.generator.call("saturate", {
      urls: urlsOf(subject),
      run,
      inFlight: phase.inFlight ?? IN_FLIGHT,
      seconds,
      ...(phase.customers !== undefined && { customers: phase.customers })
    })
  )

/** An open loop of `perSecond` requests per second; latencies count from the intended send times. */
export const offer = (bench: Bench, subject: Subject, phase: Phase & { readonly perSecond: number }) =>
  measure(bench, subject, phase, (run, seconds) =>
    bench.generator.call("offer", {
      urls: urlsOf(subject),
      run,
      perSecond: phase.perSecond,
      seconds,
      connections: IN_FLIGHT,
      ...(phase.customers !== undefined && { customers: phase.customers })
    })
  )

/** Sends `count` events as fast as acknowledged, for at most `seconds`, and waits for no delivery. */
export const fill = (bench: Bench, url: string, count: number, seconds: number) => {
  const run = bench.nextRun()
  return Effect.map(
    bench.generator.call("saturate", { urls: [url], run, inFlight: IN_FLIGHT, seconds, count }),
    (sent) => ({
      ...sent,
      run,
      perSecond: (sent.acknowledged / (sent.endedAt - sent.startedAt)) * 1_000_000
    })
  )
}
