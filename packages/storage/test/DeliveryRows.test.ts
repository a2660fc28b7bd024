import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { noteStarts, pendingEvents } from "../src/delivery/DeliveryRows.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, insertEvent } = ControlPlane

layer(ControlPlane.layer, { excludeTestServices: true })("Start times of deliveries", (it) => {
  it.effect("Start times are stored without waiting for a row whose attempt is being recorded", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const [free, taken] = [yield* insertEvent(connection), yield* insertEvent(connection)]
      const locked = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const recording = yield* sql`select 1 from deliveries where event_id = ${taken} for update`.pipe(
        Effect.andThen(Deferred.succeed(locked, undefined)),
        Effect.andThen(Deferred.await(release)),
        sql.withTransaction,
        Effect.forkChild
      )
      yield* Deferred.await(locked)
      const at = Date.now() - 1_000
      yield* noteStarts([free, taken, "evt_none"].map((id) => [id, at] as const))
      const startOf = (id: string) =>
        Effect.map(
          sql<{ started_at: Date | null }>`select started_at from deliveries where event_id = ${id}`,
          ([row]) => row?.started_at?.getTime()
        )
      expect(yield* startOf(free)).toBe(at)
      expect(yield* startOf(taken)).toBeUndefined()
      yield* Deferred.succeed(release, undefined)
      yield* Fiber.join(recording)
      yield* noteStarts([[taken, at]])
      expect(yield* startOf(taken)).toBe(at)
    })
  )
})

layer(ControlPlane.layer, { excludeTestServices: true })("Data for deliveries", (it) => {
  it.effect(
    "The data for deliveries comes in the given order, up to a number of bytes, and at least one event comes",
    () =>
      Effect.gen(function* () {
        const connection = yield* createConnection()
        const ids: Array<string> = []
        for (const length of [10, 20, 30, 40]) ids.push(yield* insertEvent(connection, { body: "x".repeat(length) }))
        ids.reverse()
        const upTo = (bytes: number) =>
          Effect.map(pendingEvents(ids, bytes), (rows) => rows.map(({ body, id }) => [id, body?.length]))
        const all = ids.map((id, i) => [id, 40 - 10 * i])
        expect(yield* upTo(1_000)).toEqual(all)
        expect(yield* upTo(71)).toEqual(all.slice(0, 3))
        expect(yield* upTo(70)).toEqual(all.slice(0, 2))
        expect(yield* upTo(1)).toEqual(all.slice(0, 1))
      })
  )

  it.effect("An event whose transformed payload is gone is left out, and not sent as it was received", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const [gone, changed, plain] = [
        yield* insertEvent(connection),
        yield* insertEvent(connection),
        yield* insertEvent(connection)
      ]
      const [none, data] = [newId(prefixes.eventData, Date.now()), newId(prefixes.eventData, Date.now())]
      yield* sql`insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body, body_size,
          created_at)
        select ${data}, team_id, request_id, connection_id, 'PUT', '/changed', 'a=b', '{"a":"b"}', 'changed'::bytea, false, 7, now()
        from events where id = ${changed}`
      for (const [event, of] of [
        [gone, none],
        [changed, data]
      ] as const)
        yield* sql`update events set event_data_id = ${of} where id = ${event}`
      const found = yield* pendingEvents([gone, changed, plain], 1_000)
      expect(
        found.map(({ body, headers, id, method, path, query }) => [
          id,
          method,
          path,
          query,
          headers,
          Buffer.from(body!).toString()
        ])
      ).toEqual([
        [changed, "PUT", "/changed", "a=b", '{"a":"b"}', "changed"],
        [plain, "POST", "/", "", "{}", "{}"]
      ])
    })
  )
})
