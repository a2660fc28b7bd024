/**
 * The two ways of loading a subject, and the measurements under load. Both are the same for the bare pipeline and for the
 * gateway.
 */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { GeneratorCommands, Sent } from "./Generator.ts"
import type { Postgres } from "./Postgres.ts"
import { nowMicros } from "./Payload.ts"
import { busySeconds, processStats, proportionalMemory, together } from "./ProcessStats.ts"
import type { TargetCommands } from "./Target.ts"
import type { Worker, WorkerError } from "./Worker.ts"

/** The parts that all measurements share. */
export interface Bench {
  readonly postgres: Postgres
  readonly target: Worker<TargetCommands>
  readonly targetOrigin: string
  readonly generator: Worker<GeneratorCommands>
  /** After this time since the last delivery, the commits that record it are certainly done. */
  readonly settleMillis: number
  /** A run number that no measurement has used yet. Run numbers separate late arrivals of one phase from the next. */
  readonly nextRun: () => number
}

/** The measured system: a relay that delivers each event posted to `url` to every target path in `targetPaths`. */
export interface Subject {
  readonly pid: number
  readonly database: string
  readonly url: string
  readonly targetPaths: ReadonlyArray<string>
  /** The other processes of the subject, if it has several. Their CPU and memory are added to its own. */
  readonly others?: ReadonlyArray<number>
  /** The other addresses, if requests go to several in turn. */
  readonly otherUrls?: ReadonlyArray<string>
}

/** One measured phase. An event is one routed delivery: with three connections one request makes three. */
export interface Measurement {
  /** Distinct deliveries per second, from the first send to the last delivery. */
  readonly perSecond: number
  readonly acknowledged: number
  readonly delivered: number
  /** Deliveries for acknowledged requests that had not arrived when the waiting time ended. */
  readonly missing: number
  readonly duplicates: number
  readonly malformed: number
  /** Deliveries that arrived after a later event of the same customer. Meaningful only if `Phase.customers` is set. */
  readonly inversions: number
  readonly refused: number
  /** The refusals with status 429 and Retry-After. */
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
  /** CPU seconds of the whole phase. */
  readonly seconds: { readonly gateway: number; readonly sandbox: number; readonly postgres: number }
  /** Seconds from the first send to the last answer. */
  readonly sending: number
  /** CPU cores that other processes used during the phase: in a disturbed phase the figures mean little. */
  readonly otherCores: number
  /** The subject's memory in megabytes: at the end, and the maximum of its main process so far. */
  readonly residentMegabytes: number
  readonly peakMegabytes: number
  /** The memory at the end, with shared memory divided among the processes that share it. */
  readonly megabytes: { readonly gateway: number; readonly sandbox: number }
}

/** The length of a phase in seconds: the start that is not measured, and the measured part. */
export interface Phase {
  readonly leadIn: number
  readonly seconds: number
  /** Requests in flight at saturation. */
  readonly inFlight?: number
  /** The number of customers, if the events of one customer are to be sent one after the other. */
  readonly customers?: number
  /** Whether each request is sent on a connection of its own. */
  readonly newConnections?: boolean
}

/** Default for the requests in flight at saturation. */
const IN_FLIGHT = 100
/**
 * After the last send, deliveries that have not arrived count as missing: after this time without any delivery, or after the
 * limit.
 */
const STALL_MILLIS = 10_000
const LIMIT_MILLIS = 60_000

const urlsOf = ({ otherUrls = [], url }: Subject): ReadonlyArray<string> => [url, ...otherUrls]

/** The events of a run that are to arrive. */
type Sending<E> = Effect.Effect<Sent & { readonly run: number }, E>

/** Sends one part of a phase, and waits until everything is delivered. */
const sendAndDrain = Effect.fnUntraced(function* <E>(bench: Bench, subject: Subject, send: Sending<E>) {
  const sent = yield* send
  const arrived = yield* bench.target.call("drained", {
    run: sent.run,
    targetPaths: subject.targetPaths,
    count: sent.acknowledged,
    stallMillis: STALL_MILLIS,
    limitMillis: LIMIT_MILLIS
  })
  yield* Effect.sleep(bench.settleMillis)
  return { sent, arrived }
})

/**
 * Measures one phase. Its start is not measured: in it, connections are opened, code and pages return to the caches after another
 * subject has used them, and PostgreSQL writes full pages after the checkpoint.
 */
const measure = Effect.fnUntraced(function* <E>(
  bench: Bench,
  subject: Subject,
  phase: Phase,
  send: (seconds: number) => Sending<E>
): Effect.fn.Return<Measurement, SqlError | WorkerError | E> {
  yield* bench.postgres.checkpoint
  if (phase.leadIn > 0) yield* sendAndDrain(bench, subject, send(phase.leadIn))
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
  const { sent, arrived } = yield* sendAndDrain(bench, subject, send(phase.seconds))
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
    missing: subject.targetPaths.reduce(
      (sum, targetPath) => sum + Math.max(0, sent.acknowledged - (arrived.distinct[targetPath] ?? 0)),
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

const sendersOf = ({ customers, newConnections }: Pick<Phase, "customers" | "newConnections">) => ({
  ...(customers !== undefined && { customers }),
  ...(newConnections !== undefined && { newConnections })
})

/**
 * Saturation: a closed loop with 100 requests in flight sends for `seconds`, as fast as requests are acknowledged. The rate is
 * measured from the first send to the last delivery, so the time to deliver a backlog counts.
 */
export const saturate = (bench: Bench, subject: Subject, phase: Phase) =>
  measure(bench, subject, phase, (seconds) => {
    const run = bench.nextRun()
    const input = { urls: urlsOf(subject), run, inFlight: phase.inFlight ?? IN_FLIGHT, seconds, ...sendersOf(phase) }
    return Effect.map(bench.generator.call("saturate", input), (sent) => ({ ...sent, run }))
  })

/** An open loop with `perSecond` requests per second. Latencies are measured from the intended send times. */
export const offer = (bench: Bench, subject: Subject, phase: Phase & { readonly perSecond: number }) =>
  measure(bench, subject, phase, (seconds) => {
    const run = bench.nextRun()
    const { perSecond } = phase
    const input = { urls: urlsOf(subject), run, perSecond, seconds, connections: IN_FLIGHT, ...sendersOf(phase) }
    return Effect.map(bench.generator.call("offer", input), (sent) => ({ ...sent, run }))
  })

/** The longest time for sending what is to wait (s). */
const WAITING_SECONDS = 120

/**
 * Events that wait: `count` of them are sent while nothing is delivered. They are measured from `resume`, which begins their deliveries, to
 * the last one. Their latencies contain the time in which they waited.
 */
export const drain = Effect.fnUntraced(function* <E>(
  bench: Bench,
  subject: Subject,
  { count, ...phase }: Pick<Phase, "customers" | "inFlight"> & { readonly count: number },
  { pause, resume }: { readonly pause: Effect.Effect<void, E>; readonly resume: Effect.Effect<void, E> }
) {
  yield* pause
  const run = bench.nextRun()
  const sent = yield* bench.generator.call("saturate", {
    urls: urlsOf(subject),
    run,
    inFlight: phase.inFlight ?? IN_FLIGHT,
    seconds: WAITING_SECONDS,
    count,
    ...sendersOf(phase)
  })
  return yield* measure(bench, subject, { leadIn: 0, seconds: 0 }, () =>
    Effect.suspend(() => {
      const startedAt = nowMicros()
      return Effect.map(resume, () => ({ ...sent, run, startedAt, endedAt: nowMicros() }))
    })
  )
})

/** Sends `count` events as fast as they are acknowledged, for at most `seconds`, and does not wait for deliveries. */
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
