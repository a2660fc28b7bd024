import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { feedCursor } from "../../src/reads/EventFeed.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import { eventFilterOf } from "../../src/reads/Narrowing.ts"
import { writeFeed } from "../../src/journal/FeedStatement.ts"
import * as ControlPlane from "../controlPlane.ts"

const { createConnection, insertEvent, otherTeam, team } = ControlPlane

const plain = { data: false }

const pageBehind = (after: string, limit = 100, narrowing: object = {}) =>
  EventReads.feed(team, eventFilterOf(narrowing), { key: JSON.stringify(narrowing), after, limit }, plain)

/** Completes when nothing that is stored waits for an older transaction: those of other suites' databases on this server count. */
const allShown = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (;;) {
    const [row] = yield* sql<{ shown: boolean }>`
      select coalesce(max(txid) < pg_snapshot_xmin(pg_current_snapshot()), true) as shown from event_feed`
    if (row!.shown) return
  }
})

const begin = Effect.andThen(
  allShown,
  Effect.map(pageBehind("now"), ({ next_cursor }) => next_cursor)
)

/** Events that are noted as one commit has stored them. */
const note = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const rows = ids.map((id) => `('${id}', '${team}')`).join()
  yield* sql.unsafe(writeFeed(`(values ${rows}) as r (id, team_id)`))
})

const stored = Effect.fnUntraced(function* (connection: Parameters<typeof insertEvent>[0], createdAt = new Date()) {
  const id = yield* insertEvent(connection, { createdAt })
  yield* note([id])
  return id
})

/** What a reader is shown who goes on until there is no more, and where that is. */
const readOn = Effect.fnUntraced(function* (after: string, limit = 100, narrowing: object = {}) {
  const ids: Array<string> = []
  let cursor = after
  for (;;) {
    const page = yield* pageBehind(cursor, limit, narrowing)
    ids.push(...page.models.map(({ id }) => id))
    cursor = page.next_cursor
    if (!page.has_more) return { ids, cursor }
    expect(page.count).toBeLessThanOrEqual(limit)
  }
})

/** The same once all that is stored can be shown. */
const readAll = (after: string, limit = 100, narrowing: object = {}) =>
  Effect.andThen(allShown, readOn(after, limit, narrowing))

layer(ControlPlane.layer, { excludeTestServices: true })("Feed of events", (it) => {
  it.effect("The feed shows events after its cursor in the order in which they were stored", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      yield* stored(connection)
      const after = yield* begin
      const now = Date.now()
      // Of clocks that differ, and of a request that slow rules have kept for an hour.
      const ids = yield* Effect.forEach([0, 5_000, -5_000, -3_600_000, 1], (by) =>
        stored(connection, new Date(now + by))
      )
      const first = yield* readAll(after, 2)
      expect(first.ids).toEqual(ids)
      const later = yield* stored(connection, new Date(now - 86_000_000))
      expect((yield* readAll(first.cursor)).ids).toEqual([later])
      // The same cursor shows the same again.
      expect((yield* readAll(after, 3)).ids).toEqual([...ids, later])
    })
  )

  it.effect("The feed shows the time that lists and counts use, and the time of storage", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const received = new Date(Date.now() - 3_600_000)
      const id = yield* insertEvent(connection, { createdAt: received })
      const decided = new Date(Date.now() - 60_000)
      yield* sql`update events set created_at = ${decided}, updated_at = ${decided} where id = ${id}`
      const filter = eventFilterOf({ connection_id: [connection.id] })
      const listed = (from: string) =>
        EventReads.list(team, filter, { key: "k", window: { from }, cursor: undefined, limit: 10 }, plain)
      const { models } = yield* listed("now-2h")
      expect(models).toMatchObject([
        {
          id,
          created_at: received.toISOString(),
          stored_at: decided.toISOString(),
          ingested_at: received.toISOString()
        }
      ])
      // A window that ends or begins at the time it tells has it.
      const at = models[0]!.created_at
      expect((yield* listed(at)).count).toBe(1)
      expect((yield* listed(new Date(received.getTime() + 1).toISOString())).count).toBe(0)
      expect((yield* EventReads.count(team, filter, { from: at, to: at })).total).toBe(1)
    })
  )

  it.effect("The feed is sorted by transaction numbers, not by their digits", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const ids: Array<string> = []
      for (const txid of ["9", "10", "98", "99", "100", "101"]) {
        const id = yield* insertEvent(connection)
        yield* sql`insert into event_feed (id, team_id, txid, event_ids)
          values (${`fed_${id.slice(prefixes.event.length)}`}, ${team}, ${txid}::xid8, ${[id]}::text[])`
        ids.push(id)
      }
      const narrowing = { connection_id: [connection.id] }
      const after = feedCursor(JSON.stringify(narrowing), { txid: "9", entry: "", taken: 0, at: Date.now() })
      for (const limit of [1, 4, 100]) expect((yield* readAll(after, limit, narrowing)).ids).toEqual(ids)
    })
  )

  it.effect("The feed waits for a running transaction before it shows later ones, each event once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const after = yield* begin
      const begun = yield* Deferred.make<string>()
      const release = yield* Deferred.make<void>()
      const slow = yield* stored(connection).pipe(
        Effect.tap((id) => Deferred.succeed(begun, id)),
        Effect.tap(() => Deferred.await(release)),
        sql.withTransaction,
        Effect.forkChild
      )
      const held = yield* Deferred.await(begun)
      const quick = yield* stored(connection)
      const before = yield* readOn(after)
      expect(before.ids).toEqual([])
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(slow)
      expect((yield* readAll(before.cursor)).ids).toEqual([held, quick])
    })
  )

  it.effect("Concurrent readers see each event of concurrent writers once, with any page size", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const after = yield* begin
      const made: Array<string> = []
      const writer = (seed: number) =>
        Effect.forEach(Array.from({ length: 12 }), (_, n) =>
          Effect.gen(function* () {
            const by = ((seed * 7 + n * 13) % 21) * 1_000 - 10_000
            const ids = yield* Effect.forEach(Array.from({ length: 1 + ((seed + n) % 4) }), () =>
              insertEvent(connection, { createdAt: new Date(Date.now() + by) })
            )
            yield* note(ids)
            made.push(...ids)
            if (n % 3 === 0) yield* sql`select pg_sleep(0.005)`
          }).pipe(sql.withTransaction)
        )
      let writing = true
      const reader = (limit: number) =>
        Effect.gen(function* () {
          const ids: Array<string> = []
          let cursor = after
          for (let last = false; ;) {
            const read = yield* readOn(cursor, limit)
            ids.push(...read.ids)
            cursor = read.cursor
            if (last) return ids
            last = !writing
            if (last) yield* allShown
          }
        })
      const [all] = yield* Effect.all(
        [
          Effect.all([1, 7, 100].map(reader), { concurrency: "unbounded" }),
          Effect.all([1, 2, 3].map(writer), { concurrency: "unbounded" }).pipe(
            Effect.andThen(Effect.sync(() => (writing = false)))
          )
        ],
        { concurrency: "unbounded" }
      )
      expect(made.length).toBeGreaterThan(50)
      for (const ids of all) {
        expect(ids.toSorted()).toEqual(made.toSorted())
        expect(ids).toEqual(all[0])
      }
    })
  )

  it.effect("No event is lost that is stored while a filtered page is made", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const first = yield* insertEvent(connection)
      const [{ request_id } = { request_id: "" }] = yield* sql<{ request_id: string }>`
        select request_id from events where id = ${first}`
      const narrowing = { request_id: [request_id] }
      yield* allShown
      const { next_cursor: after } = yield* pageBehind("now", 100, narrowing)
      const held = yield* Deferred.make<void>()
      const store = yield* Deferred.make<void>()
      // The entries wait for this transaction, the events that the filter gathers do not.
      const writer = yield* Effect.gen(function* () {
        yield* sql`lock table event_feed in access exclusive mode`
        yield* Deferred.succeed(held, undefined)
        yield* Deferred.await(store)
        const id = yield* insertEvent(connection)
        yield* sql`update events set request_id = ${request_id}, retry_parent_event_id = ${first}, retry_kind = 'single'
          where id = ${id}`
        yield* note([id])
        return id
      }).pipe(sql.withTransaction, Effect.forkChild)
      yield* Deferred.await(held)
      const reader = yield* Effect.forkChild(pageBehind(after, 100, narrowing))
      for (;;) {
        const waiting = yield* sql`select 1 from pg_locks where relation = 'event_feed'::regclass and not granted`
        if (waiting.length > 0) break
      }
      yield* Deferred.succeed(store, undefined)
      const id = yield* Fiber.join(writer)
      const page = yield* Fiber.join(reader)
      const behind = yield* readAll(page.next_cursor, 100, narrowing)
      expect([...page.models.map((event) => event.id), ...behind.ids]).toEqual([id])
    })
  )

  it.effect("The feed accepts the filters of lists, and shows only its team's events", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* createConnection(), yield* createConnection()]
      const narrowing = { connection_id: [one.id] }
      yield* allShown
      const { next_cursor: after } = yield* pageBehind("now", 100, narrowing)
      const ids: Array<string> = []
      for (let n = 0; n < 5; n++) {
        ids.push(yield* stored(one))
        yield* stored(other)
      }
      expect((yield* readAll(after, 2, narrowing)).ids).toEqual(ids)
      const theirs = EventReads.feed(otherTeam, eventFilterOf({}), { key: "k", after: "now", limit: 10 }, plain)
      const cursor = (yield* theirs).next_cursor
      yield* stored(one)
      yield* allShown
      const page = yield* EventReads.feed(otherTeam, eventFilterOf({}), { key: "k", after: cursor, limit: 10 }, plain)
      expect(page.models).toEqual([])
    })
  )

  it.effect("A cursor that is invalid, or older than the retained events, is rejected", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const refused = (after: string, narrowing: object = {}) =>
        Effect.map(Effect.flip(pageBehind(after, 10, narrowing)), (error) => (error as { code: string }).code)
      const after = yield* begin
      expect(yield* refused("yesterday")).toBe("INVALID_CURSOR")
      expect(yield* refused(after, { is_retry: true })).toBe("INVALID_CURSOR")
      expect(yield* refused(`${after.slice(0, -4)}AAAA`)).toBe("INVALID_CURSOR")
      // What is behind it has been taken by retention.
      yield* sql`update teams set records_cleared_to = now() + interval '1 minute' where id = ${team}`
      expect(yield* refused(after)).toBe("INVALID_CURSOR")
      yield* sql`update teams set records_cleared_to = null where id = ${team}`
      // A reader that is far behind does not become newer by reading: what it has not read yet was stored since it was last at the end.
      const connection = yield* createConnection()
      const old = new Date(Date.now() - 7_200_000)
      for (let n = 0; n < 3; n++) yield* stored(connection, old)
      yield* allShown
      const taken = Date.now()
      while (Date.now() === taken) continue
      const cleared = new Date()
      const page = yield* pageBehind(after, 1)
      expect(page.has_more).toBe(true)
      yield* sql`update teams set records_cleared_to = ${cleared} where id = ${team}`
      expect(yield* refused(page.next_cursor)).toBe("INVALID_CURSOR")
      yield* sql`update teams set records_cleared_to = null where id = ${team}`
      expect((yield* readAll(page.next_cursor)).ids).toHaveLength(2)
      expect(yield* refused(newId(prefixes.event, 0))).toBe("INVALID_CURSOR")
      expect((yield* pageBehind(after)).models).toHaveLength(3)
    })
  )
})
