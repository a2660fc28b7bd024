/**
 * The bare pipeline: the minimum that a durable webhook relay has to do, as fast as this platform can do it. It stores a request
 * and its event in one group commit, answers 200, delivers with undici, and stores the attempt and the event's new status in
 * another group commit. It has no rules, actors, recovery or retries. It is the reference, so it is tuned: one statement per
 * commit, which is prepared and has its own connection, batches that grow with the load, keep-alive connections, and PostgreSQL's
 * default durability (fsync and synchronous_commit on).
 */
import { randomBytes } from "node:crypto"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { Pool } from "undici"
import { type Commands, serve } from "./Worker.ts"

/** Deliveries in flight at once. Up to `ACCEPTED_AHEAD` others wait in memory. */
const DELIVERIES_IN_FLIGHT = 64
/** At this number of accepted and undelivered events, commits of further requests wait, so that memory stays limited. */
const ACCEPTED_AHEAD = 2_000
/** Rows of one commit. */
const BATCH = 500

const tables = [
  `create table requests (id text primary key, received_at timestamptz not null default now(), path text not null,
     headers text not null, body bytea not null)`,
  `create table events (id text primary key, request_id text not null, status text not null, attempts int not null,
     created_at timestamptz not null default now()) with (fillfactor = 80)`,
  `create table attempts (id text primary key, event_id text not null, response_status int not null,
     duration_ms int not null, created_at timestamptz not null default now())`
]

const storeRequests = `
  with incoming as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[])
      as t(request_id, event_id, path, headers, body)
  ), stored as (
    insert into requests (id, path, headers, body) select request_id, path, headers, body from incoming
  )
  insert into events (id, request_id, status, attempts) select event_id, request_id, 'QUEUED', 0 from incoming`

const storeAttempts = `
  with done as (
    select * from unnest($1::text[], $2::text[], $3::int[], $4::int[]) as t(id, event_id, response_status, duration_ms)
  ), stored as (
    insert into attempts (id, event_id, response_status, duration_ms) select * from done
  )
  update events set status = case when done.response_status between 200 and 299 then 'SUCCESSFUL' else 'FAILED' end,
    attempts = attempts + 1
  from done where events.id = done.event_id`

/**
 * A new table has no statistics. Until it has some, the planner joins a batch of attempts with a scan of all events, so every
 * commit costs more than the last one. Only one plan is good, so the planner gets no other choice.
 */
const PLANNER = {
  plan_cache_mode: "force_generic_plan",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_seqscan: "off"
}

interface Accepted {
  readonly requestId: string
  readonly eventId: string
  readonly path: string
  readonly headers: string
  readonly body: Buffer
  readonly contentType: string
  readonly response: ServerResponse
}

interface Attempt {
  readonly id: string
  readonly eventId: string
  readonly status: number
  readonly millis: number
}

/** Ids that sort by time, as long as those of a gateway: milliseconds, this process, a counter. */
const makeId = (() => {
  const writer = randomBytes(4).toString("hex")
  let count = 0
  return (prefix: string) =>
    `${prefix}${Date.now().toString(36).padStart(9, "0")}${writer}${(count++).toString(36).padStart(9, "0")}`
})()

/**
 * Collects the items that are added during a commit, and writes them with the next one. There is no fixed time window, so a
 * single item does not wait. `ready` may hold commits back; the code that makes it true again calls `pump`.
 */
const groupCommit = <Item>(
  commit: (batch: ReadonlyArray<Item>) => Promise<void>,
  ready: () => boolean = () => true
) => {
  let waiting: Array<Item> = []
  let committing = false
  const pump = (): void => {
    if (committing || waiting.length === 0 || !ready()) return
    const batch = waiting.length > BATCH ? waiting.slice(0, BATCH) : waiting
    waiting = waiting.length > BATCH ? waiting.slice(BATCH) : []
    committing = true
    void commit(batch).finally(() => {
      committing = false
      pump()
    })
  }
  const add = (item: Item): void => {
    waiting.push(item)
    pump()
  }
  return { add, pump }
}

/** Starts the pipeline on a free loopback port, and creates its tables in an empty database. */
export const makePipeline = async (input: { readonly databaseUrl: string; readonly targetUrl: string }) => {
  // The connections live as long as the process.
  const scope = Scope.makeUnsafe()
  const connect = () =>
    Effect.runPromise(
      PgConnection.make({ url: Redacted.make(input.databaseUrl), multiplex: true, startupParameters: PLANNER }).pipe(
        Scope.provide(scope)
      )
    )
  const [requests, attempts] = await Promise.all([connect(), connect()])
  for (const table of tables) await Effect.runPromise(requests.query(table))

  const target = new URL(input.targetUrl)
  const pool = new Pool(target.origin, { connections: DELIVERIES_IN_FLIGHT, pipelining: 1, keepAliveTimeout: 60_000 })
  let queue: Array<Accepted> = []
  let next = 0
  let inFlight = 0

  const execute = (connection: PgConnection.PgConnection, statement: string, parameters: ReadonlyArray<unknown>) =>
    Effect.runPromise(connection.queryValues(statement, parameters))

  // An attempt that cannot be stored ends the process, because a measurement with lost rows is worthless.
  const attempted = groupCommit<Attempt>(async (batch) => {
    await execute(attempts, storeAttempts, [
      batch.map((attempt) => attempt.id),
      batch.map((attempt) => attempt.eventId),
      batch.map((attempt) => attempt.status),
      batch.map((attempt) => attempt.millis)
    ])
  })

  const deliver = async (event: Accepted): Promise<void> => {
    const started = performance.now()
    let status = 0
    try {
      const { statusCode, body } = await pool.request({
        method: "POST",
        path: target.pathname,
        headers: ["content-type", event.contentType, "webhook-id", event.eventId],
        body: event.body
      })
      await body.dump()
      status = statusCode
    } catch {
      // No answer is recorded as status 0; there are no retries.
    }
    inFlight--
    const millis = Math.round(performance.now() - started)
    attempted.add({ id: makeId("att_"), eventId: event.eventId, status, millis })
    pumpDeliveries()
  }

  const pumpDeliveries = (): void => {
    while (inFlight < DELIVERIES_IN_FLIGHT && next < queue.length) {
      inFlight++
      void deliver(queue[next++]!)
    }
    if (next > 1_000 || next === queue.length) {
      queue = queue.slice(next)
      next = 0
    }
    accepted.pump()
  }

  const accept = async (batch: ReadonlyArray<Accepted>): Promise<void> => {
    try {
      await execute(requests, storeRequests, [
        batch.map((request) => request.requestId),
        batch.map((request) => request.eventId),
        batch.map((request) => request.path),
        batch.map((request) => request.headers),
        batch.map((request) => request.body)
      ])
    } catch {
      for (const request of batch) request.response.writeHead(503, { "retry-after": "1" }).end()
      return
    }
    for (const request of batch) {
      const answer = `{"ok":true,"queued":true,"request_id":"${request.requestId}"}`
      request.response.writeHead(200, { "content-type": "application/json", "content-length": answer.length })
      request.response.end(answer)
      queue.push(request)
    }
    pumpDeliveries()
  }
  const accepted = groupCommit(accept, () => queue.length - next < ACCEPTED_AHEAD)

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () =>
      accepted.add({
        requestId: makeId("req_"),
        eventId: makeId("evt_"),
        path: request.url ?? "/",
        headers: JSON.stringify(request.headers),
        body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks),
        contentType: request.headers["content-type"] ?? "application/octet-stream",
        response
      })
    )
  })
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

/** The commands of the pipeline process. */
export interface PipelineCommands extends Commands {
  readonly start: typeof makePipeline
}

if (import.meta.main) serve({ start: makePipeline })
