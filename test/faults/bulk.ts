/**
 * Retries many events in bulk while live traffic runs and a runner is killed:
 * `node test/faults/bulk.ts [events] [live requests a second] [seconds of live traffic alone]`
 */
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Scope } from "effect"
import type { BulkOperation } from "@tidegate/model/BulkOperation"
import { idBound } from "@tidegate/model/Ids"
import { demoTeam } from "@tidegate/storage/Teams"
import { Gateways } from "../support/Gateways.ts"
import { Target } from "../support/Target.ts"
import { now, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { standalone } from "./Postgres.ts"

const [events = 100_000, rate = 100, aloneSeconds = 20] = process.argv.slice(2).map(Number)
const patienceMs = 3_600_000

const scope = Scope.makeUnsafe()
const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
const postgres = await standalone(folder)
const live = await Target.start()
const target = await Target.start()
const gateways = await Gateways.start(folder, postgres.url, { a: "runner", b: "runner", door: "edge" })

const route = async (name: string, origin: string) => {
  const source = await gateways.api("door", "POST", "/sources", { name })
  const destination = await gateways.api("door", "POST", "/destinations", { name, config: { url: origin } })
  const connection = await gateways.api("door", "POST", "/connections", {
    name,
    source_id: source.id,
    destination_id: destination.id
  })
  return { source: source.id, destination: destination.id, connection: connection.id }
}

/** Failed events: 100,000 requests of them share no payload. */
const seed = async ({ connection, destination, source }: Awaited<ReturnType<typeof route>>) => {
  const time = idBound("req_", Date.now() - 60_000).slice(4)
  await gateways.query(
    `insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size, events_count,
      ignored_count, ingested_at, created_at, updated_at)
    select 'req_' || $1 || substr(md5(n::text), 1, 16), $2, $3, 'accepted', false, 'POST', '/', '', '{}',
      convert_to(rpad(n::text, 500), 'utf8'), 500, 1, 0, now(), now(), now() from generate_series(1, $4) n`,
    [time, demoTeam, source, events]
  )
  await gateways.query(
    `insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, attempts,
      ingested_at, created_at, updated_at)
    select 'evt_' || substr(id, 5), team_id, id, $1, source_id, $2, 'FAILED', true, 'INITIAL', 1, now(), now(), now()
    from requests where source_id = $3`,
    [connection, destination, source]
  )
  await gateways.query("analyze events, requests")
}

const state = { isOver: false }
let accepted = 0
const took: Array<{ readonly at: number; readonly ms: number }> = []
live.reply = (response, { at, body }) => {
  took.push({ at, ms: at - Number(body.toString()) })
  response.end()
}

/** Posts at an even rate, each with the time of its own. */
const sending = async (source: string): Promise<void> => {
  const began = now()
  for (let n = 0; !state.isOver; n++) {
    const wait = began + (n * 1_000) / rate - now()
    if (wait > 0) await sleep(wait)
    gateways.call("door", "POST", `/e/${source}`, { body: String(now()) }).then(
      ({ status }) => status === 200 && accepted++,
      () => {}
    )
  }
}

const percentiles = (from: number, to: number) => {
  const values = took.flatMap(({ at, ms }) => (at >= from && at < to ? [ms] : [])).sort((a, b) => a - b)
  const at = (share: number) => Number((values[Math.floor(values.length * share)] ?? Number.NaN).toFixed(1))
  return { requests: values.length, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

try {
  await waitUntil("both runners hold shards", async () => (await gateways.readiness("b")).shards > 0)
  const bulk = await route("bulk", target.origin)
  const alive = await route("live", live.origin)
  await seed(bulk)
  const traffic = sending(alive.source)
  await sleep(5_000)
  const alone = now()
  await sleep(aloneSeconds * 1_000)
  const began = now()
  const answer = await gateways.call("door", "POST", "/v1/events/bulk_operations", {
    headers: { authorization: "Bearer gwk_cluster_test_key", "content-type": "application/json" },
    body: JSON.stringify({ source_id: bulk.source, status: "FAILED" })
  })
  const { id } = JSON.parse(answer.body) as BulkOperation
  const operation = async () => (await gateways.query("select * from bulk_operations where id = $1", [id]))[0]!
  await waitUntil("half of it is done", async () => Number((await operation())["queued_count"]) >= events / 2, {
    patienceMs
  })
  const killed = now()
  await gateways.process("a").end("SIGKILL")
  await gateways.process("a").start()
  await waitUntil("a has shards again", async () => (await gateways.readiness("a")).shards > 0)
  const back = now() + 5_000
  await waitUntil("it has come to its end", async () => (await operation())["finished_at"] !== null, { patienceMs })
  const ended = now()
  state.isOver = true
  await traffic
  const waiting = async () => (await gateways.query("select count(*)::int as count from deliveries"))[0]!["count"]
  await waitUntil("all has been delivered", async () => (await waiting()) === 0, { patienceMs })
  const [made] = await gateways.query(
    `select count(*)::int as retries, count(distinct retry_parent_event_id)::int as parents,
      count(*) filter (where state = 'SUCCESSFUL')::int as successful from events where retry_operation_id = $1`,
    [id]
  )
  const { parents, retries, successful } = made as { parents: number; retries: number; successful: number }
  process.stdout.write(
    `${JSON.stringify(
      {
        events,
        rate,
        secondsOfBulk: Math.round((ended - began) / 1_000),
        lost: events - parents,
        repeated: retries - parents,
        undelivered: retries - successful,
        deliveredTwice: target.received.length - retries,
        live: {
          accepted,
          lost: accepted - took.length,
          alone: percentiles(alone, began),
          beside: percentiles(began, killed),
          afterTheKill: percentiles(back, ended)
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
  await target.close()
  await postgres.close()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
