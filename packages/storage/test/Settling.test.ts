import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import * as Database from "@tidegate/storage/Database"
import { Journal, type RoutingCommit, type RoutingOutcome } from "@tidegate/storage/Journal"
import { migrate } from "@tidegate/storage/Migrations"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { freshDatabase } from "../../../test/postgres.ts"
import type { DecidedJob } from "../src/journal/RoutingRecord.ts"
import { requestRecord } from "./requests.ts"

const team = "tm_demo"
const destination = newId(prefixes.destination, Date.now())
const source = newId(prefixes.source, Date.now())
const connections = Array.from({ length: 3 }, () => newId(prefixes.connection, Date.now()))
const [first, second, third] = connections as [string, string, string]

const world = Journal.layer.pipe(
  Layer.provideMerge(
    Layer.effectDiscard(
      Effect.gen(function* () {
        yield* migrate
        const sql = yield* SqlClient.SqlClient
        const at = new Date()
        yield* sql`insert into teams (id, name) values (${team}, 'Demo')`
        yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
          values (${source}, ${team}, 'Demo', 'WEBHOOK', '{}', ${at}, ${at})`
      })
    )
  ),
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

/** A request that waits for the slow rules of these connections. */
const waiting = Effect.fnUntraced(function* (...of: ReadonlyArray<string>) {
  const journal = yield* Journal
  const pending = of.map((connectionId) => ({ connectionId, shard: 1, ordering: null }))
  const record = requestRecord(
    { teamId: team, sourceId: source, events: [], pending },
    { connection: first, destination }
  )
  yield* Effect.callback<void>((resume) => journal.accept(record, () => resume(Effect.void)))
  return record.id
})

const event = (requestId: string, connection: string, change: Partial<DecidedJob> = {}): DecidedJob => ({
  requestId,
  counted: true,
  fate: { kind: "event", eventId: derivedId(prefixes.event, requestId, connection), dueAt: Date.now() },
  execution: null,
  transformed: null,
  opens: null,
  ...change
})

const ignored = (requestId: string, connection: string, meta = "[]"): DecidedJob =>
  event(requestId, connection, {
    fate: {
      kind: "ignored",
      ignoredId: derivedId(prefixes.ignoredEvent, requestId, connection),
      cause: "FILTERED",
      meta
    }
  })

const commit = (connectionId: string, decided: ReadonlyArray<DecidedJob>, change: Partial<RoutingCommit> = {}) =>
  Effect.flatMap(Journal, (journal) =>
    Effect.callback<RoutingOutcome>((resume) =>
      journal.commitRouting({
        connectionId,
        destinationId: destination,
        shard: 1,
        now: Date.now(),
        isTunnel: false,
        basis: null,
        decided,
        bytes: 512,
        inOrder: false,
        isOwned: () => true,
        done: (outcome) => resume(Effect.succeed(outcome)),
        ...change
      })
    )
  )

const together = { concurrency: "unbounded" } as const

/** What is stored of a request: what is pending, and how it is counted. */
const stored = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const pending = yield* sql`select connection_id from pending_routes where request_id = ${id} order by 1`
  const events = yield* sql<{ connection_id: string }>`select connection_id from events where request_id = ${id}`
  const request = yield* RequestReads.detail(team, id)
  return {
    pending: pending.length,
    events: events.map(({ connection_id }) => connection_id).toSorted(),
    counts: [request.events_count, request.ignored_count]
  }
})

layer(world, { excludeTestServices: true })("Commits of routing jobs", (it) => {
  it.effect("Routing results of several connections are one commit, and each learns what it created", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const id = yield* waiting(...connections)
      const other = yield* waiting(first)
      expect(yield* stored(id)).toStrictEqual({ pending: 3, events: [], counts: [0, 0] })
      const before = journal.stats().statements
      const outcomes = yield* Effect.all(
        [
          commit(first, [event(id, first), event(other, first)]),
          commit(second, [ignored(id, second)]),
          commit(third, [event(id, third, { fate: { kind: "dropped" } })])
        ],
        together
      )
      expect(journal.stats().statements - before).toBe(1)
      const made = outcomes.map((outcome) => (outcome.kind === "committed" ? Array.from(outcome.made) : outcome.kind))
      expect(made).toStrictEqual([
        [id, other].map((one) => derivedId(prefixes.event, one, first)),
        [derivedId(prefixes.ignoredEvent, id, second)],
        []
      ])
      expect(yield* stored(id)).toStrictEqual({ pending: 0, events: [first], counts: [1, 1] })
      expect(yield* stored(other)).toStrictEqual({ pending: 0, events: [first], counts: [1, 0] })
    })
  )

  it.effect("Routing results that the database rejects do not affect others", () =>
    Effect.gen(function* () {
      const id = yield* waiting(...connections)
      const outcomes = yield* Effect.all(
        [
          commit(first, [event(id, first)]),
          commit(second, [ignored(id, second, "{not JSON")]),
          commit(third, [event(id, third)])
        ],
        together
      )
      expect(outcomes.map(({ kind }) => kind)).toStrictEqual(["committed", "failed", "committed"])
      expect(yield* stored(id)).toStrictEqual({ pending: 1, events: [first, third].toSorted(), counts: [2, 0] })
    })
  )

  it.effect("Outdated or unowned routing results write nothing, and others of the commit do", () =>
    Effect.gen(function* () {
      const id = yield* waiting(...connections)
      const basis = { sourceId: source, version: 1, transformation: null }
      const outcomes = yield* Effect.all(
        [
          commit(first, [event(id, first)], { basis }),
          commit(second, [event(id, second)], { basis: { ...basis, version: 2 } }),
          commit(third, [event(id, third)], { isOwned: () => false })
        ],
        together
      )
      expect(outcomes.map(({ kind }) => kind)).toStrictEqual(["committed", "stale", "withdrawn"])
      expect(yield* stored(id)).toMatchObject({ pending: 2, events: [first] })
      const missing = { ...basis, transformation: { id: "trs_missing", mark: "1" } }
      expect((yield* commit(second, [event(id, second)], { basis: missing })).kind).toBe("stale")
    })
  )

  it.effect("A repeated routing result creates one event, and a key opens one deduplication window", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = [yield* waiting(first), yield* waiting(first)] as const
      const opening = (id: string, expiresAt: number) => event(id, first, { opens: { key: ids[0], expiresAt } })
      const outcomes = yield* Effect.all(
        [
          commit(first, [opening(ids[0], 2_000)]),
          commit(first, [opening(ids[0], 3_000)]),
          commit(first, [opening(ids[1], 1_000)])
        ],
        together
      )
      expect(
        outcomes.map((outcome) => (outcome.kind === "committed" ? outcome.made.size : outcome.kind))
      ).toStrictEqual([1, 0, 1])
      const again = yield* commit(first, [opening(ids[1], 9_000)])
      expect(again).toStrictEqual({ kind: "committed", made: new Set() })
      const windows = yield* sql`select request_id, expires_at from dedupe_keys where key = ${ids[0]}`
      expect(windows).toStrictEqual([{ request_id: ids[0], expires_at: new Date(2_000) }])
    })
  )

  it.effect("Routing results count jobs that the previous version left uncounted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = [yield* waiting(first), yield* waiting(first)] as const
      yield* sql`update pending_routes set counted = false where request_id = any(${[...ids]})`
      yield* sql`update requests set events_count = 0 where id = any(${[...ids]})`
      expect(yield* stored(ids[0])).toMatchObject({ pending: 1, counts: [0, 0] })
      yield* commit(first, [event(ids[0], first, { counted: false }), { ...ignored(ids[1], first), counted: false }])
      expect(yield* stored(ids[0])).toMatchObject({ pending: 0, counts: [1, 0] })
      expect(yield* stored(ids[1])).toMatchObject({ pending: 0, counts: [0, 1] })
    })
  )
})
