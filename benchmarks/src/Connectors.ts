/** The cost of each destination type compared with plain HTTP, and the memory that many idle destinations of all types hold. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { Pool } from "undici"
import { type Outcome, type Plan, single, startProcess } from "./Comparison.ts"
import { type Delivering, deliveryRows, observer, summaryOf } from "./Deliveries.ts"
import { type Party, parties } from "./Parties.ts"
import * as Postgres from "./Postgres.ts"
import { processStats } from "./ProcessStats.ts"
import type { Row } from "./Report.ts"

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

export const connectors = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const own = yield* Postgres.start(join(plan.home, "party"))
  const { all, env, says, sessions } = yield* parties(own)
  const databaseUrl = yield* bench.postgres.database("connectors")
  const gateway = yield* startProcess(plan, "connectors", databaseUrl, "connectors", env)
  const { delivering } = yield* observer(gateway.pid, databaseUrl, bench.postgres)
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
    const { fault, found } = yield* delivering(send(pool, [paths.get(type)!], count), count, patienceMillis)
    if (fault !== null) failed.set(type, fault)
    return found
  })

  for (const party of reached) yield* run(party, events / 5)
  const found = new Map<string, Array<Delivering>>()
  for (let round = 0; round < Math.min(roundsAtMost, settings.rounds); round++) {
    for (const party of reached) {
      if (failed.has(party.type)) continue
      const one = yield* run(party, events)
      found.set(party.type, [...(found.get(party.type) ?? []), one])
      yield* progress(summaryOf(party.type, one))
    }
  }

  const scenario = "Connectors; reference: HTTP"
  const plain = found.get(reference) ?? []
  const rows: Array<Row> = all.flatMap(({ config, type }) => {
    const fault = config === null ? "no local party" : failed.get(type)
    if (fault !== undefined) return [single(scenario, `${type}: ${fault}`, "", Number.NaN)]
    return deliveryRows(scenario, type, found.get(type) ?? [], plain)
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
    yield* delivering(send(pool, own, own.length), own.length, patienceMillis)
  }
  const busy = resident()
  const held = yield* sessions
  yield* Effect.sleep(idleSeconds * 1_000)
  const memory = `${idleDestinations} destinations of ${working.length} types`
  rows.push(
    single(memory, "RSS before their first event", "MB", before),
    single(memory, "RSS after it", "MB", busy),
    single(memory, `RSS after ${idleSeconds} s without one`, "MB", resident()),
    single(memory, "connections to the database after their first event", "", held),
    single(memory, `connections after ${idleSeconds} s`, "", yield* sessions)
  )
  return {
    rows,
    measured: { offered: { reference: [], gateway: [] }, saturated: { reference: [], gateway: [] } }
  } satisfies Outcome
}, Effect.scoped)
