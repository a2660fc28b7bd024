/**
 * The cost of each destination type compared with plain HTTP, and the memory that many idle destinations of all types hold. Rate
 * and latency are read from the attempts that the gateway has recorded, because only the gateway knows for every type when an
 * event has arrived.
 */
import { join } from "node:path"
import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Pool } from "undici"
import { type Outcome, type Plan, single } from "./Comparison.ts"
import * as Gateway from "./Gateway.ts"
import { type Party, parties } from "./Parties.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Row } from "./Report.ts"

const reference = "HTTP"
const roundsAtMost = 2
const events = 1_500
const inFlight = 32
const patienceMillis = 30_000
const idleDestinations = 1_000
/** After this time sessions have been closed, and actors have no work. */
const idleSeconds = 45

const payload = Buffer.from(
  JSON.stringify({ id: 7, message: "hello", media_url: "https://93.184.216.34/a.png", note: "x".repeat(940) })
)

/** The results of one type in one round. */
interface Found {
  readonly perSecond: number
  /** CPU seconds of the gateway per 1,000 events. */
  readonly cpu: number
  readonly p50: number
}

/** Sends to these paths in turn, with this many requests in flight. */
const send = (pool: Pool, paths: ReadonlyArray<string>, count: number) =>
  Effect.promise(async () => {
    let sent = 0
    const one = async (): Promise<void> => {
      while (sent < count) {
        const path = paths[sent++ % paths.length]!
        const { body, statusCode } = await pool.request({ method: "POST", path, body: payload })
        await body.dump()
        if (statusCode !== 200) throw new Error(`${path} answers ${statusCode}`)
      }
    }
    await Promise.all(Array.from({ length: inFlight }, one))
  })

/** The attempts since a time. Reads again until there are `count`, or until it takes too long. */
const recorded = Effect.fnUntraced(function* (database: PgConnection, since: Date, count: number) {
  const deadline = performance.now() + patienceMillis
  while (true) {
    const { rows } = yield* database.query(
      `select count(*) filter (where a.successful_at is not null)::int as delivered,
         coalesce(max(a.error_code), '') as fault,
         extract(epoch from max(a.responded_at))::float8 * 1000 as last,
         percentile_cont(0.5) within group (order by extract(epoch from a.responded_at - e.created_at))::float8 * 1000 as p50
       from attempts a join events e on e.id = a.event_id where e.created_at >= $1`,
      [since]
    )
    const [{ delivered, fault, last, p50 }] = rows as unknown as readonly [
      { readonly delivered: number; readonly fault: string; readonly last: number; readonly p50: number }
    ]
    if (delivered >= count || performance.now() > deadline || fault !== "") return { delivered, fault, last, p50 }
    yield* Effect.sleep("50 millis")
  }
})

export const connectors = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const { all, env, says } = yield* parties(bench.postgres)
  const databaseUrl = yield* bench.postgres.database("connectors")
  const { entry, ...options } = { entry: plan.gatewayEntry, home: join(plan.home, "connectors"), log: plan.log }
  const gateway = yield* Gateway.start({
    ...options,
    entry,
    databaseUrl,
    execArgv: plan.execArgv("connectors"),
    collector: plan.collector,
    env
  })
  const database = yield* make({ url: Redacted.make(databaseUrl) })
  const pool = yield* Effect.acquireRelease(
    Effect.sync(() => new Pool(gateway.origin, { connections: inFlight })),
    (pool) => Effect.promise(() => pool.destroy())
  )
  const reached = all.filter(({ config }) => config !== null)
  const made = (party: Party, name: string) =>
    Effect.map(
      gateway.route({ name, destinations: [{ type: party.type, config: party.config! }], rules: [] }),
      (url) => new URL(url).pathname
    )
  const paths = new Map<string, string>()
  const failed = new Map<string, string>()
  for (const party of reached) paths.set(party.type, yield* made(party, `type-${party.type}`))

  const run = Effect.fnUntraced(function* ({ accepted, type }: Party, count: number) {
    says(accepted)
    const since = new Date()
    const before = processStats(gateway.pid).cpuSeconds
    yield* send(pool, [paths.get(type)!], count)
    const { delivered, fault, last, p50 } = yield* recorded(database, since, count)
    if (delivered < count) failed.set(type, fault === "" ? `${count - delivered} not delivered` : fault)
    const cpu = (processStats(gateway.pid).cpuSeconds - before) / (delivered / 1_000)
    return { perSecond: (delivered / (last - since.getTime())) * 1_000, cpu, p50 } satisfies Found
  })

  for (const party of reached) yield* run(party, events / 5)
  const found = new Map<string, Array<Found>>()
  for (let round = 0; round < Math.min(roundsAtMost, settings.rounds); round++) {
    for (const party of reached) {
      if (failed.has(party.type)) continue
      const one = yield* run(party, events)
      found.set(party.type, [...(found.get(party.type) ?? []), one])
      yield* progress(
        `${party.type}: ${one.perSecond.toFixed(0)}/s, ${one.cpu.toFixed(3)} s of CPU for 1,000, p50 ${one.p50.toFixed(1)} ms`
      )
    }
  }

  const scenario = "Connectors; reference: HTTP"
  const plain = found.get(reference) ?? []
  const rows: Array<Row> = all.flatMap(({ config, type }) => {
    const fault = config === null ? "no local party" : failed.get(type)
    if (fault !== undefined) return [single(scenario, `${type}: ${fault}`, "", Number.NaN)]
    const measured = found.get(type) ?? []
    const figure = (measure: string, unit: string, of: (one: Found) => number) =>
      makeRow({
        scenario,
        measure: `${type}: ${measure}`,
        unit,
        reference: plain.slice(0, measured.length).map(of),
        gateway: measured.map(of)
      })
    return [
      figure("rate", "events/s", (one) => one.perSecond),
      figure("CPU for 1,000 events", "s", (one) => one.cpu),
      figure("event to answer, p50", "ms", (one) => one.p50)
    ]
  })

  // Idle destinations of all types: each has had one event.
  const working = reached.filter(({ type }) => !failed.has(type))
  const resident = () => processStats(gateway.pid).residentBytes / 1e6
  const many = yield* Effect.forEach(
    Array.from({ length: idleDestinations }, (_, i) => working[i % working.length]!),
    (party, i) => Effect.map(made(party, `idle-${i}`), (path) => ({ party, path })),
    { concurrency: 16 }
  )
  const before = resident()
  for (const party of working) {
    says(party.accepted)
    const own = many.filter((one) => one.party === party).map(({ path }) => path)
    const since = new Date()
    yield* send(pool, own, own.length)
    yield* recorded(database, since, own.length)
  }
  const busy = resident()
  const backends = Effect.map(
    database.queryValues(
      "select count(*)::int from pg_stat_activity where datname = 'party' and application_name = 'tidegate'"
    ),
    ([row]) => Number(row?.[0])
  )
  const held = yield* backends
  yield* Effect.sleep(idleSeconds * 1_000)
  const memory = `${idleDestinations} destinations of ${working.length} types`
  rows.push(
    single(memory, "RSS before their first event", "MB", before),
    single(memory, "RSS after it", "MB", busy),
    single(memory, `RSS after ${idleSeconds} s without one`, "MB", resident()),
    single(memory, "connections to the database after their first event", "", held),
    single(memory, `connections after ${idleSeconds} s`, "", yield* backends)
  )
  return {
    rows,
    measured: { offered: { reference: [], gateway: [] }, saturated: { reference: [], gateway: [] } }
  } satisfies Outcome
}, Effect.scoped)
