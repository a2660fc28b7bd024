/** The latency of senders to one source while another team keeps the gateway busy: a matrix with a line for each kind of work. */
import { join } from "node:path"
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { request } from "undici"
import { atMost, homeOf, type Outcome, type Plan, startProcess } from "./Comparison.ts"
import { type Gateway, GatewayError } from "./Gateway.ts"
import type { GeneratorCommands, Sent } from "./Generator.ts"
import type { Latency } from "./Latency.ts"
import * as Postgres from "./Postgres.ts"
import { makeRow, type Row } from "./Report.ts"
import { graphs } from "./WorkflowGraphs.ts"
import { drained } from "./Workflows.ts"
import * as Worker from "./Worker.ts"

/** Requests per second to the source that is watched. */
const quiet = 40
/** Callers of the API at a time. */
const callers = 4
/** How long (ms) any request to the watched source may take, whatever the busy team does. */
const longest = 500
/** The highest p50 and p99 of the watched source during the work, as multiples of those without the work. */
const slower = 1.25
/** The highest p99 of the watched source's events at their target during replays and bulk retries, as a multiple of that without them. */
const laterAtTarget = 1.1
/** How long (ms) its events may take to arrive after the phase. */
const patience = { stallMillis: 10_000, limitMillis: 30_000 }
/** How many requests the busy sources have before the measurement. These are read, replayed and retried. */
const stored = 5_000

/** Work that goes on until it is interrupted. */
type Work = Effect.Effect<unknown, GatewayError | { readonly message: string }>

interface Context {
  readonly plan: Plan
  readonly gateway: Gateway
  /** Posts to the URL of a source at a rate, for as long as anything is measured. */
  readonly post: (url: string, perSecond: number) => Work
  /** The id of a source with events of which some have failed, and its URL. */
  readonly busy: { readonly id: string; readonly url: string }
  /** Counts a call of the API that was answered. */
  readonly answered: () => void
}

/** What the senders of the watched source saw, and how long (ms) its events took to their target. */
interface Seen extends Sent {
  readonly latency: Latency
}

interface Disturber {
  readonly name: string
  /** Whether it sends stored events beside the live ones. */
  readonly resends?: true
  readonly prepare: (context: Context) => Effect.Effect<Work, GatewayError | { readonly message: string }>
}

const call = ({ authorization, origin }: Gateway, method: "GET" | "POST", path: string, body?: object) =>
  Effect.tryPromise({
    try: async (signal) => {
      const answer = await request(`${origin}/v1/${path}`, {
        method,
        signal,
        headers: { authorization, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const text = await answer.body.text()
      // A caller with too many calls is told to wait.
      if (answer.statusCode >= 300 && answer.statusCode !== 429) {
        throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`)
      }
      return JSON.parse(text) as { readonly id: string; readonly status: string; readonly next_cursor: string | null }
    },
    catch: (cause) => new GatewayError({ message: `${method} ${path}: ${String(cause)}` })
  })

/** Calls of the API, one after the other, by each of the callers. */
const calls =
  (paths: ReadonlyArray<string>): Disturber["prepare"] =>
  ({ answered, gateway }) =>
    Effect.succeed(
      Effect.forEach(
        Array.from({ length: callers }, (_, at) => paths[at % paths.length]!),
        (path) => Effect.forever(Effect.tap(call(gateway, "GET", path), () => Effect.sync(answered))),
        { concurrency: "unbounded" }
      )
    )

/** Bulk operations on the busy source, one after the other. */
const bulk =
  (of: "requests" | "events", filter: object): Disturber["prepare"] =>
  ({ busy, gateway }) =>
    Effect.succeed(
      Effect.forever(
        Effect.gen(function* () {
          const { id } = yield* call(gateway, "POST", `${of}/bulk_operations`, {
            source_id: busy.id,
            from: "now-1h",
            ...filter
          })
          let status = "PLANNED"
          while (status === "PLANNED" || status === "RUNNING") {
            yield* Effect.sleep(200)
            ;({ status } = yield* call(gateway, "GET", `${of}/bulk_operations/${id}`))
          }
        })
      )
    )

/** Posts to a source of its own. */
const posts = (
  name: string,
  perSecond: number,
  route: { readonly rules: ReadonlyArray<object>; readonly connection?: object }
): Disturber["prepare"] =>
  Effect.fnUntraced(function* ({ gateway, plan, post }) {
    const destinations = [{ url: `${plan.bench.targetOrigin}/${name}` }]
    return post(yield* gateway.route({ name, destinations, ...route }), perSecond)
  })

const transformation = {
  name: "seen",
  code: `addHandler("transform", (request) => {
    request.body.seen = true
    return request
  })`
}

const disturbers: ReadonlyArray<Disturber> = [
  { name: "1,000 plain events/s", prepare: posts("plain", 1_000, { rules: [] }) },
  {
    name: "300 transformed events/s",
    prepare: posts("transformed", 300, { rules: [{ type: "transform", transformation }] })
  },
  {
    name: "150 requests/s that begin six runs each",
    prepare: Effect.fnUntraced(function* ({ gateway, plan, post }) {
      const graph = graphs[1]!
      const url = `${plan.bench.targetOrigin}/runs`
      const destination = yield* gateway.create("destinations", { name: "runs", type: "HTTP", config: { url } })
      const source = yield* gateway.create("sources", { name: "runs", type: "WEBHOOK" })
      const steps = graph.steps(destination)
      for (let n = 0; n < 6; n++) {
        yield* gateway.create("workflows", { name: `runs-${n}`, source_id: source, steps, edges: graph.edges })
      }
      return post(`${gateway.origin}/e/${source}`, 150)
    })
  },
  {
    name: `replays of ${stored} requests, again and again`,
    resends: true,
    prepare: bulk("requests", { status: "accepted" })
  },
  {
    name: "bulk retries of failed events, again and again",
    resends: true,
    prepare: bulk("events", { status: ["FAILED"] })
  },
  {
    name: "metrics by the second, four callers",
    prepare: calls([
      "metrics/events?from=now-10m&to=now&granularity=1s",
      "metrics/requests?from=now-10m&to=now&granularity=1s"
    ])
  },
  {
    name: "searches that find nothing, four callers",
    prepare: calls(["events?q=no-such-id", "requests?q=no-such-id", "events?status=FAILED&response_status=599"])
  },
  { name: "exports of events with their data, four callers", prepare: calls(["events?limit=255&include=data"]) }
]

export const neighbours = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  // The gateway's embedded server, as on a machine of its own: the gateway may do there what it may not do on another server.
  const postgres = yield* Postgres.start(join(homeOf(plan, "neighbours"), "postgres"))
  const gateway = yield* startProcess(plan, "neighbours", null, "neighbours")
  const sql = yield* make({ url: postgres.url })
  const busyGenerator = yield* Worker.start<GeneratorCommands>("./Generator.ts")
  const offer = (worker: typeof busyGenerator, to: string, perSecond: number, seconds: number, run = bench.nextRun()) =>
    worker.call("offer", { urls: [to], run, perSecond, seconds, connections: 100 })

  const target = `${bench.targetOrigin}/others`
  const others = yield* gateway.route({ name: "others", destinations: [{ url: target }], rules: [] })
  const busyUrl = yield* gateway.route({
    name: "busy",
    // Nobody listens at the second one: its events fail.
    destinations: [{ url: `${bench.targetOrigin}/busy` }, { url: "http://127.0.0.1:9/" }],
    rules: []
  })
  const busy = { id: busyUrl.slice(busyUrl.lastIndexOf("/") + 1), url: busyUrl }
  yield* offer(busyGenerator, busy.url, 1_000, stored / 1_000)

  const seconds = settings.leadIn + settings.offered
  const post: Context["post"] = (to, perSecond) => offer(busyGenerator, to, perSecond, seconds)
  let calls = 0
  const context = { plan, gateway, post, busy, answered: () => void calls++ }

  /** What the others see beside this work. */
  const beside = Effect.fnUntraced(function* (what: string, work: Work | null) {
    yield* postgres.checkpoint
    const under = work === null ? null : yield* Effect.forkChild(work)
    yield* Effect.sleep(settings.leadIn * 1_000)
    const run = bench.nextRun()
    calls = 0
    const sent = yield* offer(bench.generator, others, quiet, settings.offered, run)
    const perSecond = calls / settings.offered
    const failed = under?.pollUnsafe()
    if (failed !== undefined && failed._tag === "Failure") return yield* Effect.failCause(failed.cause)
    if (under !== null) yield* Fiber.interrupt(under)
    const { latency } = yield* bench.target.call("drained", {
      run,
      targetPaths: ["/others"],
      count: sent.acknowledged,
      ...patience
    })
    const { max, p50, p99 } = sent.acknowledge
    yield* progress(
      `${what}: others p50 ${p50.toFixed(1)} ms p99 ${p99.toFixed(1)} ms, worst ${max.toFixed(0)} ms, ` +
        `at their target p99 ${latency.p99.toFixed(1)} ms${perSecond === 0 ? "" : `; ${perSecond.toFixed(1)} calls/s`}`
    )
    // Waits until the work is finished, so that it does not disturb the next measurement.
    yield* drained(sql, ["workflow_queue", "pending_routes", "deliveries where due_at <= now()"])
    return { ...sent, latency } satisfies Seen
  })

  yield* beside("warm-up", null)
  const rows: Array<Row> = []
  for (const { name, prepare, resends } of disturbers.filter((disturber) => disturber.name.includes(plan.row))) {
    const work = yield* prepare(context)
    const found = { reference: [] as Array<Seen>, gateway: [] as Array<Seen> }
    for (let round = 0; round < settings.rounds; round++) {
      for (const side of round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)) {
        found[side].push(yield* beside(side === "gateway" ? name : "alone", side === "gateway" ? work : null))
      }
    }
    const figure = (measure: string, of: (seen: Seen) => number) => ({
      scenario: name,
      measure,
      unit: "ms",
      reference: found.reference.map(of),
      gateway: found.gateway.map(of)
    })
    rows.push(
      makeRow({ ...figure("answer p50", ({ acknowledge }) => acknowledge.p50), required: atMost("ratio", slower) }),
      makeRow({ ...figure("answer p99", ({ acknowledge }) => acknowledge.p99), required: atMost("ratio", slower) }),
      makeRow({ ...figure("worst answer", ({ acknowledge }) => acknowledge.max), required: atMost("value", longest) }),
      makeRow({
        ...figure("target p99", ({ latency }) => latency.p99),
        ...(resends === true && { required: atMost("ratio", laterAtTarget) })
      }),
      makeRow({ ...figure("refused", ({ refused }) => refused), unit: "", required: atMost("value", 0) })
    )
  }
  const none = { reference: [], gateway: [] }
  return { rows, layout: "matrix", measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
