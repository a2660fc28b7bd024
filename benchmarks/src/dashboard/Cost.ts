/**
 * The cost of ten open dashboards for the gateway: events are measured alternately with and without the calls of the dashboards. The calls are
 * recorded in Chromium and repeated without it, ten times as often: ten browsers on the same machine would take the CPU that is measured.
 */
import * as Effect from "effect/Effect"
import { Pool } from "undici"
import { atMost, beside, faults, type Outcome, type Plan, relayAndPostgres, single, warmUp } from "../Comparison.ts"
import { type Measurement, offer } from "../Measurement.ts"
import { processStats } from "../ProcessStats.ts"
import { gatewayWithDashboard, inBrowser, launch, load, signedIn } from "./Chromium.ts"

const dashboards = 10
const recordedSeconds = 30

/** How often each call is repeated to see what it costs. */
const repetitions = 100

/** A call of a page, and when it was made: ms after the recording began, and by the clock. */
interface Call {
  readonly path: string
  readonly at: number
  readonly clock: number
}

/** The call as a page would make it at another time: a time in the call keeps its distance to the time of the call. */
const madeAt = ({ clock, path }: Call, now: number): string =>
  path.replace(/(?<==)\d{4}-\d\d-\d\dT[^&]+/g, (time) =>
    new Date(Date.parse(decodeURIComponent(time)) + now - clock).toISOString()
  )

/** What the live list of events asks for in half a minute, while events arrive. */
const record = Effect.fnUntraced(function* (
  plan: Plan,
  { gateway, subject }: Effect.Success<ReturnType<typeof gatewayWithDashboard>>
) {
  const browser = yield* launch
  const page = yield* inBrowser("open the live list", async () => {
    const page = await signedIn(browser, gateway)
    await page.goto("./events?live=1")
    await page.getByRole("heading", { level: 1, name: "Events" }).waitFor()
    // A dashboard that is open has read its names already.
    await page.waitForLoadState("networkidle")
    return page
  })
  const calls: Array<Call> = []
  const began = performance.now()
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url())
    const at = performance.now() - began
    // The generator may need longer than half a minute. Calls after that time are not counted.
    if (pathname.startsWith("/v1/") && at < recordedSeconds * 1_000)
      calls.push({ path: pathname + search, at, clock: Date.now() })
  })
  yield* plan.bench.generator.call("offer", {
    urls: [subject.url],
    run: plan.bench.nextRun(),
    perSecond: plan.settings.perSecond,
    seconds: recordedSeconds,
    connections: 100
  })
  return calls
}, Effect.scoped)

const ask = (pool: Pool, authorization: string, path: string) =>
  inBrowser(path, async () => {
    const { body, statusCode } = await pool.request({
      method: "GET",
      path,
      headers: { authorization, "accept-encoding": "gzip, deflate, br, zstd" }
    })
    await body.dump({ limit: Infinity })
    if (statusCode !== 200) throw new Error(`the gateway answers ${statusCode}`)
  })

/**
 * The CPU (ms) of gateway and PostgreSQL for one call of each kind, right after the events that it reads, and how often a page makes the call in a
 * minute. Nothing else runs on the gateway meanwhile, so the result is the same on a busy machine.
 */
const costs = Effect.fnUntraced(function* (
  plan: Plan,
  { gateway, subject }: Effect.Success<ReturnType<typeof gatewayWithDashboard>>,
  calls: ReadonlyArray<Call>
) {
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new Pool(gateway.origin, { connections: 1 })),
    (pool) => Effect.promise(() => pool.destroy())
  )
  const used = () => ({
    gateway: processStats(subject.pid).cpuSeconds,
    postgres: processStats(plan.bench.postgres.pid).cpuSeconds
  })
  const ended = Date.now()
  const kinds = Map.groupBy(calls, ({ path }) => path.split("?")[0]!)
  const found = []
  for (const [kind, made] of kinds) {
    const path = madeAt(made.at(-1)!, ended)
    const before = used()
    for (let n = 0; n < repetitions; n++) yield* ask(pool, gateway.authorization, path)
    const after = used()
    found.push({
      kind,
      perMinute: (made.length * 60) / recordedSeconds,
      gateway: ((after.gateway - before.gateway) * 1_000) / repetitions,
      postgres: ((after.postgres - before.postgres) * 1_000) / repetitions
    })
  }
  return found
}, Effect.scoped)

/** Repeats the calls for ever, as each of the dashboards would. The dashboards start at different times. */
const repeat = (origin: string, authorization: string, calls: ReadonlyArray<Call>) =>
  Effect.gen(function* () {
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pool(origin, { connections: dashboards })),
      (pool) => Effect.promise(() => pool.destroy())
    )
    const one = (nth: number) =>
      Effect.gen(function* () {
        yield* Effect.sleep((nth / dashboards) * 2_000)
        for (;;) {
          const began = performance.now()
          for (const call of calls) {
            yield* Effect.sleep(Math.max(0, call.at - (performance.now() - began)))
            yield* ask(pool, authorization, madeAt(call, Date.now()))
          }
          yield* Effect.sleep(Math.max(0, recordedSeconds * 1_000 - (performance.now() - began)))
        }
      })
    yield* Effect.forEach(
      Array.from({ length: dashboards }, (_, nth) => nth),
      one,
      { concurrency: dashboards, discard: true }
    )
  })

export const dashboardCost = Effect.fnUntraced(function* (plan: Plan) {
  const { leadIn, offered: seconds, perSecond, rounds } = plan.settings
  const subject = yield* gatewayWithDashboard(plan, "dashboard_cost")
  yield* warmUp(plan, subject.subject)
  const calls = yield* record(plan, subject)
  yield* plan.progress(`dashboard-cost: ${calls.length} calls in ${recordedSeconds} s by one dashboard, ${load()}`)
  const offered: Record<"reference" | "gateway", Array<Measurement>> = { reference: [], gateway: [] }
  // A phase is as long as one recorded round of calls of a dashboard.
  const phase = { leadIn, seconds: Math.max(seconds, rounds === 1 ? seconds : recordedSeconds / 2), perSecond }
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? (["reference", "gateway"] as const) : (["gateway", "reference"] as const)) {
      const measuring = offer(plan.bench, subject.subject, phase)
      const { authorization, origin } = subject.gateway
      offered[side].push(
        yield* side === "reference"
          ? measuring
          : Effect.raceFirst(
              measuring,
              Effect.flatMap(Effect.scoped(repeat(origin, authorization, calls)), () => Effect.never)
            )
      )
    }
    yield* plan.progress(`dashboard-cost: round ${round + 1}, ${load()}`)
  }
  const ofCalls = yield* costs(plan, subject, calls)
  const page = "One live dashboard"
  const share = ofCalls.reduce((sum, one) => sum + (one.perMinute * (one.gateway + one.postgres)) / 60_000, 0)
  const row = beside(`Events at ${perSecond}/s with ${dashboards} live dashboards; reference: without`, offered)
  return {
    rows: [
      row("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      row("sender to target p99", "ms", (one) => one.senderToTarget.p99, atMost("ratio", 1.1)),
      row("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      row("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      row("CPU per 1,000 events, gateway", "s", (one) => one.cpu.subject),
      row("CPU per 1,000 events, PostgreSQL", "s", (one) => one.cpu.postgres),
      row("CPU per 1,000 events, gateway and PostgreSQL", "s", relayAndPostgres),
      row("SQL statements per event", "", (one) => one.statements),
      row("cores taken by other processes", "", (one) => one.otherCores),
      single(page, "calls in a minute", "", (calls.length * 60) / recordedSeconds),
      ...ofCalls.flatMap(({ gateway, kind, perMinute, postgres }) => [
        single(page, `${kind} in a minute`, "", perMinute),
        single(page, `${kind}, CPU of the gateway`, "ms", gateway),
        single(page, `${kind}, CPU of PostgreSQL`, "ms", postgres)
      ]),
      single(page, "CPU of gateway and PostgreSQL", "% of a core", share * 100, atMost("value", 1)),
      ...faults("Faults of the gateway beside dashboards", offered.gateway)
    ],
    measured: { offered, saturated: { reference: [], gateway: [] } }
  } satisfies Outcome
}, Effect.scoped)
