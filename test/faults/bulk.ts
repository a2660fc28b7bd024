/**
 * Retries many events in bulk while live traffic runs, and kills a runner amid one of the operations:
 * `node test/faults/bulk.ts [events] [live requests a second] [seconds alone]`
 *
 * The events are those of ten operations, one after the other, and before each live traffic is alone for a while: whatever else the machine
 * does, it does to both.
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import { idBound } from "@tidegate/model/Ids"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import { Gateways } from "../support/Gateways.ts"
import { Target } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import * as CountingTarget from "./CountingTarget.ts"
import { standalone } from "./Postgres.ts"

const [events = 100_000, rate = 100, secondsAlone = 15] = process.argv.slice(2).map(Number)
const patienceMs = 600_000
/** Operations, the one that a runner is killed amid, and how long what a kill delays is left out of the figures (ms). */
const operations = 10
const killedAmid = 5
const recoveryMs = 10_000

const scope = Scope.makeUnsafe()
const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
const postgres = await standalone(folder)
const live = await Target.start()
const target = await CountingTarget.start()
const gateways = await Gateways.start(folder, postgres.url, { a: "runner", b: "runner", edge: "edge" })

const route = async (name: string, origin: string) => {
  const source = await gateways.api("edge", "POST", "/sources", { name })
  const destination = await gateways.api("edge", "POST", "/destinations", { name, config: { url: origin } })
  const connection = await gateways.api("edge", "POST", "/connections", {
    name,
    source_id: source.id,
    destination_id: destination.id
  })
  return { source: source.id, destination: destination.id, connection: connection.id }
}
type Route = Awaited<ReturnType<typeof route>>

/** Failed events of requests whose bodies differ. */
const seed = async ({ connection, destination, source }: Route) => {
  const time = idBound("req_", Date.now() - 60_000).slice(4)
  await gateways.query(
    `insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size, events_count,
      ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || $1 || substr(md5($3 || n::text), 1, 16), $2, $3, 'accepted', false, 'POST', '/', '', '{}',
      convert_to(rpad(n::text, 500), 'utf8'), 500, 1, 0, now(), now(), now() from generate_series(1, $4) n`,
    [time, demoTeam, source, events / operations]
  )
  await gateways.query(
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, attempts,
      ingested_at, created_at, updated_at)
    select 'evt_' || substr(id, 5), team_id, id, $1, source_id, $2, 'FAILED', true, 'INITIAL', 1, now(), now(), now()
    from requests where source_id = $3`,
    [connection, destination, source]
  )
}

const state = { isOver: false }
let accepted = 0
const took: Array<{ readonly sentAt: number; readonly ms: number }> = []
live.reply = (response, { at, body }) => {
  const sentAt = Number(body.toString())
  took.push({ sentAt, ms: at - sentAt })
  response.end()
}

/** Posts at an even rate, each with the time of its own. */
const sending = async (source: string): Promise<void> => {
  const began = now()
  for (let n = 0; !state.isOver; n++) {
    const wait = began + (n * 1_000) / rate - now()
    if (wait > 0) await sleep(wait)
    gateways.call("edge", "POST", `/e/${source}`, { body: String(now()) }).then(
      ({ status }) => status === 200 && accepted++,
      () => {}
    )
  }
}

/** A stretch of the run (Unix ms). */
type Phase = readonly [from: number, to: number]

/** From the sender to the target, of what was sent in one of the phases. */
const percentiles = (phases: ReadonlyArray<Phase>) => {
  const values = took
    .flatMap(({ ms, sentAt }) => (phases.some(([from, to]) => sentAt >= from && sentAt < to) ? [ms] : []))
    .sort((a, b) => a - b)
  const at = (share: number) => Number((values[Math.floor(values.length * share)] ?? Number.NaN).toFixed(2))
  return { requests: values.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

const progress = (line: string) => process.stderr.write(`${((now() - startedAt) / 1_000).toFixed(0)} s: ${line}\n`)
const startedAt = now()

try {
  await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
  const alive = await route("live", live.origin)
  const bulk: Array<Route> = []
  for (let n = 0; n < operations; n++) {
    bulk.push(await route(`bulk-${n}`, target.origin))
    await seed(bulk[n]!)
  }
  await gateways.query("vacuum analyze events, requests")
  progress(`${events} failed events`)
  const traffic = sending(alive.source)
  await sleep(5_000)

  const alone: Array<Phase> = []
  const beside: Array<Phase> = []
  const afterTheKill: Array<Phase> = []
  const made: Array<string> = []
  let bulkMs = 0
  for (const [n, { destination, source }] of bulk.entries()) {
    const before = now()
    await sleep(secondsAlone * 1_000)
    const began = now()
    alone.push([before, began])
    const { id } = await gateways.api("edge", "POST", "/events/bulk_operations", {
      source_id: source,
      status: "FAILED"
    })
    made.push(id)
    const row = async () => (await gateways.query("select * from bulk_operations where id = $1", [id]))[0]!
    const isAt = (what: string, reached: (row: Readonly<Record<string, unknown>>) => boolean) =>
      waitUntil(what, async () => reached(await row()), { patienceMs, everyMs: 250 })
    if (n === killedAmid) {
      await isAt("half of it is done", ({ queued_count }) => Number(queued_count) >= events / operations / 2)
      const killed = now()
      await gateways.process("a").end("SIGKILL")
      await gateways.process("a").start()
      await waitUntil("a has shards again", async () => (await gateways.readiness("a")).shards > 0)
      beside.push([began, killed])
      afterTheKill.push([killed, now() + recoveryMs])
    }
    await isAt("it has come to its end", ({ finished_at }) => finished_at !== null)
    const ended = now()
    if (n !== killedAmid) beside.push([began, ended])
    bulkMs += ended - began
    await waitUntil(
      "all has been delivered",
      async () => {
        const [row] = await gateways.query(
          "select not exists (select from deliveries where destination_id = $1) as done",
          [destination]
        )
        return row!["done"] === true
      },
      { patienceMs }
    )
    progress(`operation ${n + 1}: ${Math.round((events / operations / (ended - began)) * 1_000)} events a second`)
    // Requests that waited because of the kill, and the slow first requests of a new process, are not counted in either phase.
    if (n === killedAmid) await sleep(Math.max(0, afterTheKill[0]![1] - now()))
  }
  state.isOver = true
  await traffic
  await waitUntil(
    "live traffic has been delivered",
    async () => {
      const [row] = await gateways.query("select not exists (select from deliveries) as done")
      return row!["done"] === true
    },
    { patienceMs }
  )

  const [found] = await gateways.query(
    `select count(*)::int as retries, count(distinct retry_parent_event_id)::int as parents,
      count(*) filter (where state = 'SUCCESSFUL')::int as successful from events where retry_operation_id = any($1)`,
    [made]
  )
  const { parents, retries, successful } = found as { parents: number; retries: number; successful: number }
  const arrived = await target.arrived()
  const figures = { alone: percentiles(alone), beside: percentiles(beside) }
  const ratio = (of: "p50" | "p99") => Number((figures.beside[of] / figures.alone[of]).toFixed(3))
  process.stdout.write(
    `${JSON.stringify(
      {
        events,
        rate,
        secondsOfBulk: Math.round(bulkMs / 1_000),
        eventsASecond: Math.round((events / bulkMs) * 1_000),
        lost: events - parents,
        repeated: retries - parents,
        undelivered: retries - successful,
        deliveredAgain: arrived.repeated,
        live: {
          accepted,
          lost: accepted - new Set(took.map(({ sentAt }) => sentAt)).size,
          ...figures,
          ratioOfP50: ratio("p50"),
          ratioOfP99: ratio("p99"),
          afterTheKill: percentiles(afterTheKill)
        }
      },
      null,
      2
    )}\n`
  )
} finally {
  state.isOver = true
  await gateways.close()
  await live.close()
  target.close()
  await postgres.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
