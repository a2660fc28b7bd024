import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as Database from "@tidegate/storage/Database"
import { type Accepted, type CommittedBy, type Forwarded, Journal } from "@tidegate/storage/Journal"
import type { RequestRecord } from "@tidegate/storage/journal/RequestRecord"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../test/postgres.ts"
import { requestRecord } from "./requests.ts"

const team = "tm_demo"

/** A migrated database with one team. Each test has journals of its own: the processes of a host. */
const database = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate
    yield* (yield* SqlClient.SqlClient)`insert into teams (id, name) values (${team}, 'Demo')`
  })
).pipe(Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url })))))

const journal = Layer.build(Layer.fresh(Journal.layer))

const world = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const at = new Date()
  const sourceId = newId(prefixes.source, at.getTime())
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${sourceId}, ${team}, ${sourceId}, 'WEBHOOK', '{}', ${at}, ${at})`
  const [here, active] = [
    yield* Effect.provide(Journal, yield* journal),
    yield* Effect.provide(Journal, yield* journal)
  ]
  const accept = (by: Journal["Service"], record: RequestRecord) =>
    Effect.callback<readonly [Accepted, CommittedBy]>((resume) =>
      by.accept(record, (outcome, by) => resume(Effect.succeed([outcome, by])))
    )
  const forwarded: Array<string> = []
  /** Requests go to the active process; `results` is what comes back of its results. */
  const forwardBy = (results: (all: ReadonlyArray<Accepted>) => ReadonlyArray<Forwarded>, isOn = true): void =>
    here.forwardBy({
      isOn: () => isOn,
      forward: (records) => {
        forwarded.push(...records.map(({ id }) => id))
        return Effect.map(
          Effect.forEach(records, (record) => Effect.map(accept(active, record), ([outcome]) => outcome), {
            concurrency: "unbounded"
          }),
          results
        )
      }
    })
  return {
    request: (change: Partial<RequestRecord> = {}) =>
      requestRecord(
        { teamId: team, sourceId, version: 1, ...change },
        { connection: newId(prefixes.connection, Date.now()), destination: newId(prefixes.destination, Date.now()) }
      ),
    accept: (record: RequestRecord) => accept(here, record),
    forwardBy,
    forwarded,
    statements: () => here.stats().statements,
    stored: Effect.map(sql<{ id: string }>`select id from requests where source_id = ${sourceId} order by id`, (rows) =>
      rows.map(({ id }) => id)
    )
  }
})

layer(database, { excludeTestServices: true })("Forwarding", (it) => {
  it.effect("Another process commits the requests, and this one sends no statement", () =>
    Effect.gen(function* () {
      const { accept, forwardBy, forwarded, request, statements, stored } = yield* world
      forwardBy((results) => results)
      const records = [request(), request(), request()]
      const outcomes = yield* Effect.forEach(records, accept, { concurrency: "unbounded" })
      expect(outcomes).toEqual(records.map(() => ["committed", "elsewhere"]))
      expect(yield* stored).toEqual(records.map(({ id }) => id).toSorted())
      expect(forwarded.toSorted()).toEqual(yield* stored)
      expect(statements()).toBe(0)
    })
  )

  it.effect("A request that was routed by an outdated version comes back, to be routed again", () =>
    Effect.gen(function* () {
      const { accept, forwardBy, request, stored } = yield* world
      forwardBy((results) => results)
      expect(yield* accept(request({ version: 0 }))).toEqual(["stale", "elsewhere"])
      expect(yield* stored).toEqual([])
    })
  )

  it.effect(
    "A request without a result is committed here once, whether or not the other process has committed it",
    () =>
      Effect.gen(function* () {
        const { accept, forwardBy, request, stored } = yield* world
        const lost = request()
        forwardBy(() => [])
        expect(yield* accept(lost)).toEqual(["committed", "elsewhere"])
        expect(yield* stored).toEqual([lost.id])
        const some = [request(), request()]
        forwardBy((results) => results.map((result, index) => (index === 0 ? null : result)))
        expect(yield* Effect.forEach(some, accept, { concurrency: "unbounded" })).toEqual(
          some.map(() => ["committed", "elsewhere"])
        )
        expect(yield* stored).toEqual([lost, ...some].map(({ id }) => id).toSorted())
      })
  )

  it.effect("A large request, and every request while forwarding is off, is committed here", () =>
    Effect.gen(function* () {
      const { accept, forwardBy, forwarded, request } = yield* world
      forwardBy((results) => results)
      const body = Buffer.alloc(100_000, 1)
      expect(yield* accept(request({ body, bodySize: body.length }))).toEqual(["committed", "now"])
      forwardBy((results) => results, false)
      expect(yield* accept(request())).toEqual(["committed", "now"])
      expect(forwarded).toEqual([])
    })
  )

  it.effect("Requests that are being forwarded count in what their source may have in the journal", () =>
    Effect.gen(function* () {
      const { request } = yield* world
      const process = yield* Effect.provide(Journal, yield* journal)
      process.forwardBy({ isOn: () => true, forward: () => Effect.never })
      const one = request({ body: null, bodySize: 60_000 })
      let sent = 0
      while (!process.isFull(one.sourceId) && sent < 20_000) {
        process.accept({ ...one, id: `${one.id}${sent++}` }, () => {})
      }
      expect(process.stats().waitingRequests).toBe(sent)
      expect(sent).toBeLessThan(1_200)
      expect(process.isFull("src_other")).toBe(false)
    })
  )
})
