import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { cancelPending } from "../src/delivery/CancelPending.ts"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, insertEvent, team } = ControlPlane

const read = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [event] = yield* sql<{ state: string; failed: boolean; error_code: string | null; due: boolean; at: boolean }>`
    select state, failed, error_code, due_at is not null as due, cancelled_at is not null as at from events where id = ${id}`
  const [queued] = yield* sql`select 1 from deliveries where event_id = ${id}`
  return { ...event, queued: queued !== undefined }
})

const cancelled = { state: "CANCELLED", failed: true, error_code: "CANCELLED", due: false, at: true, queued: false }
const pending = { state: "PENDING", failed: false, error_code: null, due: true, at: false, queued: true }

const counted = Effect.fnUntraced(function* (connectionId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ count: number | null }>`
    select sum(count)::int4 as count from counted where key_id = ${connectionId} and measure = 'cancelled'`
  return row?.count ?? 0
})

layer(ControlPlane.layer, { excludeTestServices: true })("Cancellation of pending events", (it) => {
  it.effect("Events of a disabled connection are cancelled in chunks, each once", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const connection = yield* createConnection()
      const bystander = yield* createConnection({
        source_id: connection.source_id,
        destination_id: connection.destination_id
      })
      const events = yield* Effect.forEach([1, 2, 3, 4, 5], () => insertEvent(connection))
      const done = yield* insertEvent(connection, { state: "SUCCESSFUL" })
      const untouched = yield* insertEvent(bystander)
      expect(yield* cancelPending({ connection_id: connection.id })).toBe(0)

      yield* connections.switch(team, connection.id, "disable")
      expect(yield* cancelPending({ connection_id: connection.id }, 2)).toBe(5)
      for (const id of events) expect(yield* read(id)).toStrictEqual(cancelled)
      expect((yield* read(done)).state).toBe("SUCCESSFUL")
      expect(yield* read(untouched)).toStrictEqual(pending)
      expect(yield* counted(connection.id)).toBe(5)
      expect(yield* cancelPending({ connection_id: connection.id })).toBe(0)
      expect(yield* counted(connection.id)).toBe(5)
    })
  )

  it.effect("A cancelled event is counted in the minute of its creation", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = yield* Connections
      const connection = yield* createConnection()
      const now = Math.floor(Date.now() / 60_000) * 60_000
      yield* insertEvent(connection, { createdAt: new Date(now - 120_000) })
      yield* insertEvent(connection, { createdAt: new Date(now - 61_000) })
      yield* connections.delete(team, connection.id)
      yield* cancelPending({ connection_id: connection.id })
      const rows = yield* sql`
        select minute, team_id, count::int4 as count from counted
        where key_id = ${connection.id} and measure = 'cancelled' order by minute`
      expect(rows).toStrictEqual([{ minute: new Date(now - 120_000), team_id: team, count: 2 }])
    })
  )

  it.effect("After a re-enable, only events from before it are cancelled", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const connection = yield* createConnection()
      const old = yield* insertEvent(connection, { createdAt: new Date(Date.now() - 1_000) })
      yield* connections.switch(team, connection.id, "disable")
      yield* connections.switch(team, connection.id, "enable")
      const later = yield* insertEvent(connection, { createdAt: new Date(Date.now() + 1_000) })
      expect(yield* cancelPending({ connection_id: connection.id })).toBe(1)
      expect(yield* read(old)).toStrictEqual(cancelled)
      expect(yield* read(later)).toStrictEqual(pending)
    })
  )

  it.effect("A disabled destination cancels the events of all its connections", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const first = yield* createConnection()
      const second = yield* createConnection({ destination_id: first.destination_id })
      const elsewhere = yield* createConnection()
      const events = [yield* insertEvent(first), yield* insertEvent(second)]
      const untouched = yield* insertEvent(elsewhere)
      yield* destinations.switch(team, first.destination_id, "disable")
      expect(yield* cancelPending({ destination_id: first.destination_id })).toBe(2)
      for (const id of events) expect(yield* read(id)).toStrictEqual(cancelled)
      expect(yield* read(untouched)).toStrictEqual(pending)
    })
  )

  it.effect("Cancellation skips an event that is being written, and concurrent workers share the rest", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = yield* Connections
      const connection = yield* createConnection()
      const busy = yield* insertEvent(connection)
      yield* Effect.forEach(Array.from({ length: 40 }), () => insertEvent(connection))
      yield* connections.switch(team, connection.id, "disable")
      const locked = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const writer = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`update events set attempts = 1 where id = ${busy}`
            yield* Deferred.succeed(locked, undefined)
            yield* Deferred.await(finish)
          })
        )
      )
      yield* Deferred.await(locked)
      const counts = yield* Effect.all(
        Array.from({ length: 3 }, () => cancelPending({ connection_id: connection.id }, 5)),
        { concurrency: "unbounded" }
      )
      yield* Deferred.succeed(finish, undefined)
      yield* Fiber.join(writer)
      expect(yield* read(busy)).toStrictEqual(pending)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(40)
      expect(yield* counted(connection.id)).toBe(40)
      expect(yield* cancelPending({ connection_id: connection.id })).toBe(1)
      expect(yield* read(busy)).toStrictEqual(cancelled)
    })
  )
})
