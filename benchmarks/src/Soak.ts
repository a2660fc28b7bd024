/** What grows while a gateway does everything at once for an hour: memory, file descriptors, sessions of PostgreSQL, disk. */
import { readdirSync } from "node:fs"
import { loadavg } from "node:os"
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { request, WebSocket } from "undici"
import { atMost, type Outcome, type Plan, single, startProcess } from "./Comparison.ts"
import { type Gateway, GatewayError } from "./Gateway.ts"
import type { Sent } from "./Generator.ts"
import { processMemory } from "./ProcessMemory.ts"
import { treeOf } from "./ProcessStats.ts"
import { median, type Requirement, slope } from "./Report.ts"
import { deduplicate, transform } from "./Rules.ts"
import { graphs } from "./WorkflowGraphs.ts"
import { drained } from "./Workflows.ts"

/** Of twenty requests in turn, this many go to the source of each kind of work. */
const shares = { plain: 12, transformed: 5, workflow: 2, deduplicated: 1 }
type Kind = keyof typeof shares
const kinds = Object.keys(shares) as ReadonlyArray<Kind>

const rules: { readonly [kind in Exclude<Kind, "workflow">]: ReadonlyArray<object> } = {
  plain: [],
  transformed: [transform],
  deduplicated: [deduplicate]
}

/** Streams that are open all the time, and pages of a dashboard that are read again and again. */
const streams = 4
const pages = 3
const pauseOfPageMs = 2_000
/** How often (ms) the heap is read: of a minute the least value counts, which is nearest to what a collection leaves. */
const heapEveryMs = 3_000
/** The part of the time in which caches and pools reach their size. It is not judged. */
const settling = 1 / 6
/** Looks that are taken together for a figure at the beginning or at the end. */
const looksTogether = 5

/** What a dashboard reads. */
const paths = (source: string): ReadonlyArray<string> => [
  "events?limit=100",
  `requests?source_id=${source}&limit=50`,
  "events?status=FAILED&limit=100",
  "metrics/events?from=now-1h&to=now&granularity=1m",
  "metrics/requests?from=now-10m&to=now&granularity=10s",
  "workflow-activity?limit=50",
  "events?limit=20&include=data"
]

const read = ({ authorization, origin }: Gateway, path: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const { body, statusCode } = await request(`${origin}/v1/${path}`, { headers: { authorization }, signal })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`${statusCode} ${text.slice(0, 300)}`)
    },
    catch: (cause) => new GatewayError({ message: `GET ${path}: ${String(cause)}` })
  })

/** A stream of a source's requests. `frames` counts what has come. */
const follow = ({ authorization, origin }: Gateway, source: string, frames: { count: number }) =>
  Effect.acquireRelease(
    Effect.callback<WebSocket, GatewayError>((done) => {
      const stream = new WebSocket(`${origin.replace("http", "ws")}/v1/bins/${source}/stream`, {
        protocols: ["bin.v1"],
        headers: { authorization }
      })
      stream.addEventListener("message", () => {
        if (frames.count++ === 0) done(Effect.succeed(stream))
      })
      stream.addEventListener("close", ({ code, reason }) =>
        done(Effect.fail(new GatewayError({ message: `a stream was closed: ${code} ${reason}` })))
      )
    }),
    (stream) => Effect.sync(() => stream.close())
  )

const descriptorsOf = (pid: number): number =>
  treeOf(pid).reduce((sum, process) => {
    try {
      return sum + readdirSync(`/proc/${process.pid}/fd`).length
    } catch {
      // The process has ended since it was listed.
      return sum
    }
  }, 0)

/** The figures of a look. Bytes are in MB. */
interface Look {
  readonly hours: number
  readonly requests: number
  readonly gateway: number
  readonly heap: number
  readonly outside: number
  readonly sandbox: number
  readonly postgres: number
  readonly descriptors: number
  readonly sessions: number
  readonly disk: number
}

/** A figure that must not grow: its name and unit, and by how much it may grow in an hour. */
const figures: ReadonlyArray<readonly [of: keyof Look, measure: string, unit: string, perHour: number]> = [
  ["gateway", "gateway", "MB", 15],
  ["heap", "JavaScript heap, least of a minute", "MB", 15],
  ["outside", "memory outside of the heap, with buffers", "MB", 5],
  ["sandbox", "sandbox", "MB", 15],
  ["postgres", "PostgreSQL", "MB", 30],
  ["descriptors", "file descriptors of gateway and sandbox", "", 10],
  ["sessions", "sessions of PostgreSQL", "", 3]
]

export const soak = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const { minutes, perSecond } = settings
  const url = yield* bench.postgres.database("soak")
  const gateway = yield* startProcess(plan, "soak", url, "soak")
  const sql = yield* make({ url: Redacted.make(url) })
  const idOf = (ingress: string): string => ingress.slice(ingress.lastIndexOf("/") + 1)
  const target = (kind: Kind) => `${bench.targetOrigin}/${kind}`

  const ingress = { plain: "", transformed: "", workflow: "", deduplicated: "" }
  for (const kind of kinds) {
    ingress[kind] = yield* gateway.route({
      name: kind,
      destinations: kind === "workflow" ? [] : [{ url: target(kind) }],
      rules: kind === "workflow" ? [] : rules[kind]
    })
  }
  const sends = graphs[1]!
  const destination = yield* gateway.create("destinations", {
    name: "runs",
    type: "HTTP",
    config: { url: target("workflow") }
  })
  yield* gateway.create("workflows", {
    name: "runs",
    source_id: idOf(ingress.workflow),
    steps: sends.steps(destination),
    edges: sends.edges
  })

  const frames = Array.from({ length: streams }, () => ({ count: 0 }))
  for (const seen of frames) yield* follow(gateway, idOf(ingress.plain), seen)
  let reads = 0
  const page = Effect.forEach(paths(idOf(ingress.plain)), (path) =>
    read(gateway, path).pipe(
      Effect.tap(() => Effect.sync(() => void reads++)),
      Effect.andThen(Effect.sleep(pauseOfPageMs))
    )
  )
  const watching = yield* Effect.forkChild(
    Effect.forEach(Array.from({ length: pages }), () => Effect.forever(page), { concurrency: "unbounded" })
  )

  const urls = kinds.flatMap((kind) => Array.from({ length: shares[kind] }, () => ingress[kind]))
  const sent: Array<Sent> = []
  const looks: Array<Look> = []
  const began = performance.now()
  let heaps: Array<number> = []
  const heap = Effect.gen(function* () {
    heaps.push((yield* gateway.counted("nodejs_heap_size_used_bytes", "")) / 1e6)
    yield* Effect.sleep(heapEveryMs)
  })
  yield* Effect.forkChild(Effect.forever(heap))
  for (let minute = 1; minute <= minutes; minute++) {
    sent.push(
      yield* bench.generator.call("offer", { urls, run: bench.nextRun(), perSecond, seconds: 60, connections: 100 })
    )
    const failed = watching.pollUnsafe()
    if (failed?._tag === "Failure") return yield* Effect.failCause(failed.cause)
    const found = processMemory([gateway.pid], bench.postgres.pid)
    const [row] = yield* sql.queryValues(
      `select pg_database_size(current_database())::float8, (select count(*)::int from pg_stat_activity where datname = current_database())`
    )
    const look: Look = {
      hours: (performance.now() - began) / 3_600_000,
      requests: sent.reduce((sum, { acknowledged }) => sum + acknowledged, 0),
      gateway: found.gateway / 1e6,
      heap: Math.min(...heaps),
      outside: (yield* gateway.counted("nodejs_external_memory_bytes", "")) / 1e6,
      sandbox: found.sandbox / 1e6,
      postgres: (found.sessions + found.shared) / 1e6,
      descriptors: descriptorsOf(gateway.pid),
      sessions: Number(row?.[1]),
      disk: Number(row?.[0]) / 1e6
    }
    looks.push(look)
    heaps = []
    const { acknowledge, acknowledged, refused } = sent.at(-1)!
    yield* progress(
      `minute ${minute}: ${acknowledged} accepted, ${refused} refused, p99 ${acknowledge.p99.toFixed(0)} ms; ` +
        figures.map(([of, measure]) => `${measure} ${look[of].toFixed(0)}`).join(", ") +
        `, disk ${look.disk.toFixed(0)} MB; load ${loadavg()[0]!.toFixed(1)}`
    )
  }
  yield* drained(sql, ["workflow_queue", "pending_routes", "deliveries where due_at <= now()"])
  const count = Effect.fnUntraced(function* (from: string) {
    const [row] = yield* sql.queryValues(`select count(*)::int from ${from}`)
    return Number(row?.[0])
  })

  const scenario = `${minutes} minutes with ${perSecond} requests/s: plain, transformed, deduplicated, runs of a workflow; ${streams} streams, ${pages} pages of a dashboard`
  const sum = (of: (one: Sent) => number) => sent.reduce((all, one) => all + of(one), 0)
  const acknowledged = sum((one) => one.acknowledged)
  const judged = looks.slice(Math.floor(looks.length * settling))
  const near = (of: keyof Look, some: ReadonlyArray<Look>) => median(some.map((look) => look[of]))
  const none = atMost("value", 0)
  const growth = (required: Requirement, of: keyof Look, measure: string, unit: string) => [
    single(scenario, `${measure}, at the beginning`, unit, near(of, judged.slice(0, looksTogether))),
    single(scenario, `${measure}, at the end`, unit, near(of, judged.slice(-looksTogether))),
    single(
      scenario,
      `${measure}, growth`,
      unit === "" ? "in an hour" : `${unit}/h`,
      slope(judged.map((look) => [look.hours, look[of]] as const)),
      required
    )
  ]
  const perRequest = (from: Look, to: Look) => ((to.disk - from.disk) / (to.requests - from.requests)) * 1e6
  const [first, middle, last] = [judged[0]!, judged[judged.length >> 1]!, judged.at(-1)!]
  return {
    rows: [
      single(scenario, "requests acknowledged", "", acknowledged),
      single(
        scenario,
        "requests refused",
        "",
        sum((one) => one.refused),
        none
      ),
      single(scenario, "requests acknowledged and not stored", "", acknowledged - (yield* count("requests")), none),
      single(scenario, "events not delivered", "", yield* count("events where state <> 'SUCCESSFUL'"), none),
      single(scenario, "runs not completed", "", yield* count("workflow_runs where status <> 'succeeded'"), none),
      single(
        scenario,
        "frames of streams",
        "",
        frames.reduce((all, seen) => all + seen.count, 0)
      ),
      single(scenario, "reads of pages", "", reads),
      single(scenario, "acknowledge p50, of a minute", "ms", median(sent.map((one) => one.acknowledge.p50))),
      single(scenario, "acknowledge p99, of a minute", "ms", median(sent.map((one) => one.acknowledge.p99))),
      ...figures.flatMap(([of, measure, unit, perHour]) => growth(atMost("value", perHour), of, measure, unit)),
      single(scenario, "disk of a request, first half", "bytes", perRequest(first, middle)),
      single(
        scenario,
        "disk of a request, second half against the first",
        "",
        perRequest(middle, last) / perRequest(first, middle),
        atMost("value", 1.1)
      )
    ],
    measured: { offered: { reference: [], gateway: [] }, saturated: { reference: [], gateway: [] } }
  } satisfies Outcome
}, Effect.scoped)
