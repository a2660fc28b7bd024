import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Tracer } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { next } from "@tidegate/runtime/TestSignal"
import * as Database from "@tidegate/storage/Database"
import { type Accepted, Journal, type Recorded } from "@tidegate/storage/Journal"
import type { AttemptRecord } from "../src/journal/AttemptStatement.ts"
import type { RequestRecord } from "@tidegate/storage/journal/RequestRecord"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../test/postgres.ts"
import { attemptRecord } from "./attempts.ts"
import { requestRecord } from "./requests.ts"

/** By it a connection is cut in the middle of the work, and again when some of it is done. */
const nextCommit = Effect.promise(() => next("commit"))

const team = "tm_demo"

/** The hot statements on a migrated database with one team. */
const journal = Journal.layer.pipe(
  Layer.provideMerge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        yield* migrate
        yield* (yield* SqlClient.SqlClient)`insert into teams (id, name) values (${team}, 'Demo')`
      })
    )
  ),
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

const makeSource = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const at = new Date()
  const id = newId(prefixes.source, at.getTime())
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${id}, ${team}, ${id}, 'WEBHOOK', '{}', ${at}, ${at})`
  return id
})

const connection = newId(prefixes.connection, Date.now())
const destination = newId(prefixes.destination, Date.now())

const request = (sourceId: string, version = 1, change: Partial<RequestRecord> = {}): RequestRecord =>
  requestRecord({ teamId: team, sourceId, version, ...change }, { connection, destination })

const accept = (record: RequestRecord) =>
  Effect.flatMap(Journal, (journal) =>
    Effect.callback<Accepted>((resume) => journal.accept(record, (outcome) => resume(Effect.succeed(outcome))))
  )

const attempt = (of: RequestRecord, attemptNumber: number, change: Partial<AttemptRecord> = {}): AttemptRecord =>
  attemptRecord({
    teamId: team,
    eventId: of.events[0]!.id,
    requestId: of.id,
    connectionId: connection,
    sourceId: of.sourceId,
    destinationId: destination,
    attemptNumber,
    rootEventId: null,
    eventCreatedAt: of.ingestedAt,
    ...change
  })

const record = (of: AttemptRecord) =>
  Effect.flatMap(Journal, (journal) =>
    Effect.callback<Recorded>((resume) => journal.record(of, true, (outcome) => resume(Effect.succeed(outcome))))
  )

const failing = {
  successful: false,
  responseStatus: 500,
  errorCode: "BAD_RESPONSE",
  failureMessage: "HTTP 500"
} as const

const counts = Effect.fnUntraced(function* (sourceId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ requests: number; events: number; deliveries: number; counted: number }>`
    select (select count(*)::int4 from requests where source_id = ${sourceId}) as requests,
      (select count(*)::int4 from events where source_id = ${sourceId}) as events,
      (select count(*)::int4 from deliveries d join events e on e.id = d.event_id where e.source_id = ${sourceId}) as deliveries,
      (select coalesce(sum(count), 0)::int4 from counted where key_id = ${sourceId} and measure = 'accepted') as counted`
  return row!
})

const eventOf = Effect.fnUntraced(function* (of: RequestRecord) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ state: string; failed: boolean; attempts: number; due_at: Date | null; queued: boolean }>`
    select state, failed, attempts, due_at, exists (select from deliveries d where d.event_id = e.id) as queued
    from events e where id = ${of.events[0]!.id}`
  return row!
})

layer(journal, { excludeTestServices: true })("Journal in SQL", (it) => {
  it.effect("A source that floods the journal fills half of it, and another source finds room", () =>
    Effect.gen(function* () {
      const [loud, quiet] = [yield* makeSource, yield* makeSource]
      const { accept, isFull } = yield* Journal
      const outcomes: Array<Accepted> = []
      let sent = 0
      const done = yield* Deferred.make<void>()
      while (!isFull(loud)) {
        sent++
        accept(request(loud, 1, { body: null, bodySize: 500_000 }), (outcome) => {
          if (outcomes.push(outcome) === sent) Deferred.doneUnsafe(done, Effect.void)
        })
      }
      // Half of 128 MiB.
      expect(sent).toBeGreaterThan(100)
      expect(sent).toBeLessThan(150)
      expect(isFull(quiet)).toBe(false)
      yield* Deferred.await(done)
      expect(new Set(outcomes)).toEqual(new Set(["committed"]))
      expect(isFull(loud)).toBe(false)
    })
  )

  it.effect("Statements of the journal make no spans, even where others are traced", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const stored = request(source)
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          spans.push(options.name)
          return new Tracer.NativeSpan(options)
        }
      })
      const own = Layer.fresh(Journal.layer).pipe(Layer.provideMerge(Layer.succeed(Tracer.Tracer, tracer)))
      const traced = yield* Layer.build(own)
      const outcomes = Effect.all([accept(stored), record(attempt(stored, 1))])
      expect(yield* Effect.provide(outcomes, traced)).toEqual(["committed", "SUCCESSFUL"])
      expect(spans).toEqual([])
      yield* Effect.provide((yield* SqlClient.SqlClient)`select 1`, traced)
      expect(spans).not.toEqual([])
    }).pipe(Effect.scoped)
  )

  it.effect("The journal stores a request with its event, queue row and count in one commit", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const stored = request(source)
      expect(yield* accept(stored)).toBe("committed")
      expect(yield* counts(source)).toStrictEqual({ requests: 1, events: 1, deliveries: 1, counted: 1 })
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ body: Uint8Array; events_count: number }>`
        select body, events_count from requests where id = ${stored.id}`
      expect(Buffer.from(row!.body).toString()).toBe("body")
      expect(row!.events_count).toBe(1)
    })
  )

  it.effect(
    "A request that was routed by an outdated version is not stored, but the other requests of its batch are",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const source = yield* makeSource
        yield* sql`update sources set version = 2 where id = ${source}`
        const outcomes = yield* Effect.all(
          [accept(request(source, 1)), accept(request(source, 2)), accept(request(source, 1))],
          {
            concurrency: "unbounded"
          }
        )
        expect(outcomes).toStrictEqual(["stale", "committed", "stale"])
        expect(yield* counts(source)).toStrictEqual({ requests: 1, events: 1, deliveries: 1, counted: 1 })
      })
  )

  it.effect("The journal writes the same rows for one request as for many at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* makeSource
      const [other, third] = [newId(prefixes.connection, Date.now()), newId(prefixes.connection, Date.now())]
      const full = () => {
        const of = request(source, 1, { presented: "sealed", verified: true, externalId: "ext", originalIp: "::1" })
        const id = derivedId(prefixes.ignoredEvent, of.id, other)
        return {
          ...of,
          ignored: [{ id, connectionId: other, cause: "FILTERED" as const, meta: '["body"]' }],
          pending: [{ connectionId: third, shard: 7, ordering: null }]
        }
      }
      const rejected = () =>
        request(source, 1, { status: "rejected", rejectionCause: "TOO_LARGE", body: null, events: [] })
      const at = Date.now()
      const times = { deliveredAt: at, respondedAt: at + 5, finishedAt: at + 7, retryAt: null }
      const failed = { ...failing, ...times, respondedAt: null, responseHeaders: null, body: null }
      const changes = [times, { ...failed, retryAt: at + 60_000 }, failed]
      /** `mixed`: all kinds in one batch, else one kind after the other. */
      const run = Effect.fnUntraced(function* (count: number, mixed: boolean) {
        const made = Array.from({ length: count }, () => [full(), full(), full(), rejected()] as const)
        const inBatches = <A, E, R>(kinds: ReadonlyArray<ReadonlyArray<Effect.Effect<A, E, R>>>) =>
          Effect.forEach(mixed ? [kinds.flat()] : kinds, (batch) => Effect.all(batch, { concurrency: "unbounded" }))
        yield* inBatches(([0, 1, 2, 3] as const).map((kind) => made.map((requests) => accept(requests[kind]))))
        yield* inBatches(
          changes.map((change, kind) => made.map((requests) => record(attempt(requests[kind]!, 1, change))))
        )
        return yield* Effect.forEach(made[0]!, ({ id }) =>
          Effect.forEach(
            [
              sql`select * from requests where id = ${id}`,
              sql`select * from events where request_id = ${id}`,
              sql`select * from attempts where request_id = ${id}`,
              sql`select d.* from deliveries d join events e on e.id = d.event_id where e.request_id = ${id}`,
              sql`select * from ignored_events where request_id = ${id}`,
              sql`select * from pending_routes where request_id = ${id}`
            ],
            (rows) => rows
          )
        )
      })
      // What differs from one request to the next: its id, those derived from it, and its time.
      const alike = (rows: unknown) =>
        JSON.stringify(rows)
          .replaceAll(/(req|evt|att|ign)_\w{26}/g, "$1")
          .replaceAll(/"(due_at|ingested_at|created_at|updated_at)":"[^"]*"/g, '"$1":""')
      const alone = yield* run(1, false)
      expect(alone.map((tables) => tables.map((rows) => rows.length))).toEqual([
        [1, 1, 1, 0, 1, 1],
        [1, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1],
        [1, 0, 0, 0, 0, 0]
      ])
      expect(alike(yield* run(5, false)), "of a kind").toBe(alike(alone))
      expect(alike(yield* run(5, true)), "mixed").toBe(alike(alone))
    })
  )

  it.effect("Requests are counted the same in a batch of one source as in a batch of two, and stale ones are not", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [own, first, second] = [yield* makeSource, yield* makeSource, yield* makeSource]
      const rejected = { status: "rejected", rejectionCause: "TOO_LARGE", body: null, events: [] } as const
      const of = (source: string) => [
        request(source),
        request(source),
        request(source, 1, rejected),
        request(source, 1, { ingestedAt: Date.now() - 60_000 })
      ]
      const all = (requests: ReadonlyArray<RequestRecord>) =>
        Effect.all(requests.map(accept), { concurrency: "unbounded" })
      expect(new Set(yield* all(of(own)))).toEqual(new Set(["committed"]))
      expect(new Set(yield* all([...of(first), ...of(second)]))).toEqual(new Set(["committed"]))
      const countsOf = (source: string) => sql<{ pair: boolean; measure: string; count: number }>`
        select key_id <> ${source} as pair, measure, sum(count)::int4 as count from counted
        where key_id in (${source}, ${`${source}>${destination}`}) group by 1, 2 order by 1, 2`
      const counted = yield* countsOf(own)
      expect(counted).toEqual([
        { pair: false, measure: "accepted", count: 3 },
        { pair: false, measure: "created", count: 3 },
        { pair: false, measure: "rejected", count: 1 },
        { pair: true, measure: "created", count: 3 }
      ])
      expect(yield* countsOf(first)).toEqual(counted)
      expect(yield* countsOf(second)).toEqual(counted)
      yield* sql`update sources set version = 2 where id = ${own}`
      expect(new Set(yield* all(of(own)))).toEqual(new Set(["stale"]))
      expect(yield* countsOf(own)).toEqual(counted)
    })
  )

  it.effect("A request of a deleted source is stale for any version", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* makeSource
      yield* sql`update sources set deleted_at = now() where id = ${source}`
      expect(yield* accept(request(source))).toBe("stale")
    })
  )

  it.effect("The journal stores a thousand concurrent requests with few statements", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const before = (yield* Journal).stats()
      const outcomes = yield* Effect.forEach(Array.from({ length: 1000 }), () => accept(request(source)), {
        concurrency: "unbounded"
      })
      expect(outcomes.every((outcome) => outcome === "committed")).toBe(true)
      const after = (yield* Journal).stats()
      expect(after.requests - before.requests).toBe(1000)
      expect(after.statements - before.statements).toBeLessThan(20)
      expect(yield* counts(source)).toStrictEqual({ requests: 1000, events: 1000, deliveries: 1000, counted: 1000 })
    })
  )

  it.effect("A record that the database rejects does not affect the others of its batch", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const outcomes = yield* Effect.all(
        [accept(request(source)), accept(request(source, 1, { path: "/\u0000" })), accept(request(source))],
        { concurrency: "unbounded" }
      )
      expect(outcomes).toStrictEqual(["committed", "failed", "committed"])
    })
  )

  it.effect("A record that cannot be encoded does not affect the others, and nobody keeps waiting", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const outcomes = yield* Effect.all(
        [accept(request(source)), accept(request(source, 1, { bodySize: Number.NaN })), accept(request(source))],
        { concurrency: "unbounded" }
      )
      expect(outcomes).toStrictEqual(["committed", "failed", "committed"])
      const of = request(source)
      yield* accept(of)
      expect(yield* record(attempt(of, 1, { deliveryLatency: Number.NaN }))).toBe("superseded")
    })
  )

  it.effect("Pending requests are stored exactly once when all connections are cut", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* makeSource
      const load = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 400 }), () => accept(request(source)), { concurrency: 40 })
      )
      for (let i = 0; i < 10; i++) {
        yield* sql`select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'tidegate-journal'
          and datname = current_database()`
        yield* Effect.raceFirst(nextCommit, Fiber.await(load))
      }
      const outcomes = yield* Fiber.await(load)
      expect(outcomes._tag).toBe("Success")
      if (outcomes._tag === "Success") expect(outcomes.value.every((outcome) => outcome === "committed")).toBe(true)
      expect(yield* counts(source)).toStrictEqual({ requests: 400, events: 400, deliveries: 400, counted: 400 })
    })
  )

  it.effect("A small request is committed beside large ones, not after them", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const body = Buffer.alloc(8 * 1024 * 1024, "x")
      const order: Array<string> = []
      const handIn = (name: string, change: Partial<RequestRecord> = {}) =>
        Effect.map(accept(request(source, 1, change)), (outcome) => order.push(`${name} ${outcome}`))
      const large = Array.from({ length: 5 }, (_, i) => handIn(`large-${i}`, { body, bodySize: body.length }))
      yield* Effect.all([...large, handIn("small")], { concurrency: "unbounded" })
      expect(order.length).toBe(6)
      expect(order.indexOf("small committed")).toBeLessThan(order.indexOf("large-4 committed"))
      expect((yield* counts(source)).requests).toBe(6)
    })
  )

  it.effect("Only a record of a day without a partition is rejected", () =>
    Effect.gen(function* () {
      const source = yield* makeSource
      const at = Date.now() + 20 * 86_400_000
      const id = newId(prefixes.request, at)
      const outcomes = yield* Effect.all([accept(request(source)), accept({ ...request(source), id, events: [] })], {
        concurrency: "unbounded"
      })
      expect(outcomes).toStrictEqual(["committed", "failed"])
    })
  )

  it.effect("A successful attempt makes the event final, removes its queue row and is counted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const of = request(yield* makeSource)
      yield* accept(of)
      expect(yield* record(attempt(of, 1))).toBe("SUCCESSFUL")
      const event = yield* eventOf(of)
      expect(event).toStrictEqual({ state: "SUCCESSFUL", failed: false, attempts: 1, due_at: null, queued: false })
      const rows = yield* sql<{ status: string; attempt_number: number }>`
        select status, attempt_number from attempts where event_id = ${of.events[0]!.id}`
      expect(rows).toStrictEqual([{ status: "SUCCESSFUL", attempt_number: 1 }])
    })
  )

  it.effect("A failed attempt is stored with its retry, and the last one without", () =>
    Effect.gen(function* () {
      const of = request(yield* makeSource)
      yield* accept(of)
      const retryAt = Date.now() + 60_000
      expect(yield* record(attempt(of, 1, { ...failing, retryAt }))).toBe("PENDING")
      const waiting = yield* eventOf(of)
      expect(waiting.due_at?.getTime()).toBe(retryAt)
      expect(waiting.queued).toBe(true)
      expect(yield* record(attempt(of, 2, failing))).toBe("FAILED")
      expect(yield* eventOf(of)).toStrictEqual({
        state: "FAILED",
        failed: true,
        attempts: 2,
        due_at: null,
        queued: false
      })
    })
  )

  it.effect("Only the next attempt of an event is stored, and a repeated or outdated one changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const of = request(yield* makeSource)
      yield* accept(of)
      expect(yield* record(attempt(of, 2))).toBe("superseded")
      expect(yield* record(attempt(of, 1, { ...failing, retryAt: Date.now() }))).toBe("PENDING")
      expect(yield* record(attempt(of, 1))).toBe("superseded")
      expect(yield* record(attempt(of, 2))).toBe("SUCCESSFUL")
      expect(yield* record(attempt(of, 3))).toBe("superseded")
      const rows = yield* sql<{ attempt_number: number }>`
        select attempt_number from attempts where event_id = ${of.events[0]!.id} order by attempt_number`
      expect(rows.map((row) => row.attempt_number)).toStrictEqual([1, 2])
    })
  )

  it.effect("A successful delivery that was in progress overrides a cancellation", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* makeSource
      const cancelled = Effect.fnUntraced(function* () {
        const of = request(source)
        yield* accept(of)
        const id = of.events[0]!.id
        yield* sql`update events set state = 'CANCELLED', failed = true, error_code = 'CANCELLED', cancelled_at = now(), due_at = null
          where id = ${id}`
        yield* sql`delete from deliveries where event_id = ${id}`
        return of
      })
      const arrived = yield* cancelled()
      expect(yield* record(attempt(arrived, 1))).toBe("SUCCESSFUL")
      expect((yield* eventOf(arrived)).failed).toBe(false)
      const lost = yield* cancelled()
      expect(yield* record(attempt(lost, 1, { ...failing, retryAt: Date.now() + 1000 }))).toBe("CANCELLED")
      expect(yield* eventOf(lost)).toStrictEqual({
        state: "CANCELLED",
        failed: true,
        attempts: 1,
        due_at: null,
        queued: false
      })
    })
  )

  it.effect("Every attempt is stored exactly once while connections are cut", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* makeSource
      const all = Array.from({ length: 300 }, () => request(source))
      yield* Effect.forEach(all, accept, { concurrency: "unbounded" })
      const recording = yield* Effect.forkChild(
        Effect.forEach(all, (of) => record(attempt(of, 1)), { concurrency: 30 })
      )
      for (let i = 0; i < 5; i++) {
        yield* sql`select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'tidegate-journal'
          and datname = current_database()`
        yield* Effect.raceFirst(nextCommit, Fiber.await(recording))
      }
      yield* Fiber.await(recording)
      const [row] = yield* sql<{ attempts: number; successful: number }>`
        select (select count(*)::int4 from attempts where source_id = ${source}) as attempts,
          (select count(*)::int4 from events where source_id = ${source} and state = 'SUCCESSFUL') as successful`
      expect(row).toStrictEqual({ attempts: 300, successful: 300 })
      expect((yield* counts(source)).deliveries).toBe(0)
    })
  )
})
