/** Calls of the control API: creates, updates and reads of sources, destinations and connections, by one caller and by sixteen. */
import * as Effect from "effect/Effect"
import { Pool } from "undici"
import { atMost, type Outcome, type Plan, startGateway } from "./Comparison.ts"
import { type Gateway, GatewayError } from "./Gateway.ts"
import { type Latency, makeHistogram, record, summarize } from "./Latency.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Row } from "./Report.ts"

type Kind = "sources" | "destinations" | "connections"

interface Call {
  readonly method: "POST" | "PATCH" | "GET"
  readonly path: string
  readonly body?: object
}

/** The results of one phase. Statements and CPU (ms) are per call. */
interface Found {
  readonly perSecond: number
  readonly latency: Latency
  readonly statements: number
  readonly gateway: number
  readonly postgres: number
}

interface Subject extends Gateway {
  readonly database: string
  readonly pool: Pool
}

const kinds: ReadonlyArray<Kind> = ["sources", "destinations", "connections"]
const callers = [1, 16] as const
/** The number of resources that updates and reads use in turn, and over which connections are spread. */
const spread = 64

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new GatewayError({ message: String(cause) }) })

const call = async ({ authorization, pool }: Subject, { body, method, path }: Call): Promise<string> => {
  const answer = await pool.request({
    method,
    path: `/v1/${path}`,
    headers: { authorization, ...(body === undefined ? {} : { "content-type": "application/json" }) },
    body: body === undefined ? null : JSON.stringify(body)
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`${method} /v1/${path}: ${answer.statusCode} ${text.slice(0, 500)}`)
  return text
}

const idOf = (text: string): string => (JSON.parse(text) as { id: string }).id

/** Calls without a pause, by this number of callers, for this time. */
const phase = async (
  plan: Plan,
  subject: Subject,
  count: number,
  seconds: number,
  next: (n: number) => Call
): Promise<Found> => {
  const { bench } = plan
  const observe = async () => ({
    statements: await Effect.runPromise(bench.postgres.statements(subject.database)),
    gateway: processStats(subject.pid).cpuSeconds,
    postgres: processStats(bench.postgres.pid).cpuSeconds
  })
  const histogram = makeHistogram()
  const before = await observe()
  const began = performance.now()
  let started = 0
  const one = async () => {
    while (performance.now() - began < seconds * 1_000) {
      const at = performance.now()
      await call(subject, next(started++))
      record(histogram, (performance.now() - at) * 1_000)
    }
  }
  await Promise.all(Array.from({ length: count }, one))
  const took = (performance.now() - began) / 1_000
  const after = await observe()
  const latency = summarize(histogram)
  const per = (of: "statements" | "gateway" | "postgres") => (after[of] - before[of]) / latency.count
  return {
    perSecond: latency.count / took,
    latency,
    statements: per("statements"),
    gateway: per("gateway") * 1_000,
    postgres: per("postgres") * 1_000
  }
}

/** Encrypted by each create, and masked in each answer. */
const secret = "0123456789abcdef0123456789abcdef"

const bodies = (plan: Plan, ids: Readonly<Record<Kind, ReadonlyArray<string>>>) =>
  ({
    sources: (name: string) => ({
      name,
      type: "WEBHOOK",
      config: { auth_type: "API_KEY", auth: { header_key: "x-key", api_key: secret } }
    }),
    destinations: (name: string) => ({
      name,
      type: "HTTP",
      config: {
        url: `${plan.bench.targetOrigin}/control`,
        auth_type: "CUSTOM_HEADER",
        auth: { header_name: "x-key", value: secret }
      }
    }),
    connections: (name: string, n: number) => ({
      name,
      source_id: ids.sources[n % spread],
      destination_id: ids.destinations[n % spread],
      rules: [{ type: "retry", strategy: "linear", count: 5, interval: 60_000 }]
    })
  }) satisfies Record<Kind, (name: string, n: number) => object>

/** Every operation by one caller and by sixteen. Each round uses new names. */
const round = async (plan: Plan, subject: Subject, label: string, tell: (name: string, found: Found) => void) => {
  const ids: Record<Kind, Array<string>> = { sources: [], destinations: [], connections: [] }
  const body = bodies(plan, ids)
  for (const kind of kinds) {
    // Created before the measurement, then changed and read.
    for (let n = 0; n < spread; n++) {
      ids[kind].push(idOf(await call(subject, { method: "POST", path: kind, body: body[kind](`${label} ${n}`, n) })))
    }
    const one = (n: number) => `${kind}/${ids[kind][n % spread]}`
    for (const count of callers) {
      const operations: Readonly<Record<string, (n: number) => Call>> = {
        create: (n) => ({ method: "POST", path: kind, body: body[kind](`${label} ${count} ${n}`, n) }),
        update: (n) => ({ method: "PATCH", path: one(n), body: { description: `${label} ${count} ${n}` } }),
        read: (n) => ({ method: "GET", path: one(n) })
      }
      for (const [operation, next] of Object.entries(operations)) {
        const who = count === 1 ? "one caller" : `${count} callers`
        const found = await phase(plan, subject, count, plan.settings.saturated / 2, next)
        tell(`${operation} ${kind}, ${who}`, found)
      }
    }
  }
}

const figures: ReadonlyArray<readonly [measure: string, unit: string, of: (found: Found) => number]> = [
  ["calls", "calls/s", (found) => found.perSecond],
  ["p50", "ms", (found) => found.latency.p50],
  ["p99", "ms", (found) => found.latency.p99],
  ["SQL statements per call", "", (found) => found.statements],
  ["CPU per call, gateway", "ms", (found) => found.gateway],
  ["CPU per call, PostgreSQL", "ms", (found) => found.postgres]
]

/** Measures each operation separately; with `--before`, next to the earlier version in the same run. */
export const control = Effect.fnUntraced(function* (plan: Plan) {
  const isBeside = plan.beforeEntry !== plan.gatewayEntry
  const start = Effect.fnUntraced(function* (database: string, gatewayEntry: string) {
    const gateway = yield* startGateway({ ...plan, gatewayEntry }, database)
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pool(gateway.origin, { connections: Math.max(...callers) })),
      (pool) => Effect.promise(() => pool.destroy())
    )
    return { ...gateway, database, pool } satisfies Subject
  })
  const sides = [
    ...(isBeside ? [["reference", yield* start("control_before", plan.beforeEntry)] as const] : []),
    ["gateway", yield* start("control", plan.gatewayEntry)] as const
  ]
  const rounds = Math.min(3, plan.settings.rounds)
  const found = new Map<string, { readonly reference: Array<Found>; readonly gateway: Array<Found> }>()
  // The first round only warms the processes up.
  for (let n = 0; n <= rounds; n++) {
    for (const [side, subject] of n % 2 === 0 ? sides : sides.toReversed()) {
      const lines: Array<string> = []
      yield* attempt(() =>
        round(plan, subject, `round ${n}`, (name, one) => {
          lines.push(
            `${subject.database}: ${name}: ${one.perSecond.toFixed(0)}/s, p50 ${one.latency.p50.toFixed(1)} ms, p99 ${one.latency.p99.toFixed(1)} ms, ` +
              `${one.statements.toFixed(1)} statements, CPU ${one.gateway.toFixed(2)} + ${one.postgres.toFixed(2)} ms`
          )
          if (n === 0) return
          const of = found.get(name) ?? { reference: [], gateway: [] }
          of[side].push(one)
          found.set(name, of)
        })
      )
      for (const line of n === 0 ? [] : lines) yield* plan.progress(line)
    }
  }
  const rows = Array.from(found, ([scenario, { gateway, reference }]) =>
    figures.map(([measure, unit, of]) =>
      makeRow({
        scenario: `Control API: ${scenario}${isBeside ? "; reference: the version before" : ""}`,
        measure,
        unit,
        ...(isBeside ? { reference: reference.map(of) } : {}),
        gateway: gateway.map(of),
        ...(scenario.startsWith("create") && measure === "p50" ? { required: atMost("value", 15) } : {})
      })
    )
  ).flat() satisfies ReadonlyArray<Row>
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
