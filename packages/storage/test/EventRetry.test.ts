import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { isId, newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { retryDestination, retryEvent } from "../src/bulk/EventRetry.ts"
import { Sources } from "../src/control/Sources.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, createDestination, insertEvent, otherTeam, team } = ControlPlane

const retry = (event_id: string, team_id = team, id = newId(prefixes.event, Date.now())) =>
  retryEvent({ team_id, event_id, id, shardOf: () => 42 })
const refusal = (event_id: string, team_id = team) =>
  Effect.map(Effect.flip(retry(event_id, team_id)), ({ code }) => code)

layer(ControlPlane.layer, { excludeTestServices: true })("Retry of an event", (it) => {
  it.effect("A retry creates a queued and counted event with the same payload and marks the old one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const parent = yield* insertEvent(connection, { state: "FAILED", createdAt: new Date(Date.now() - 60_000) })
      const retried = yield* retry(parent)
      expect(isId(prefixes.event, retried.id)).toBe(true)
      expect(retried).toStrictEqual({
        id: retried.id,
        parent_event_id: parent,
        connection_id: connection.id,
        destination_id: connection.destination_id,
        shard: 42,
        created_at: retried.created_at
      })
      const [before, after] = yield* sql<Record<string, unknown>>`
        select * from events where id in (${parent}, ${retried.id}) order by id`
      expect(after).toStrictEqual({
        ...before,
        id: retried.id,
        state: "PENDING",
        failed: false,
        trigger: "MANUAL",
        due_at: retried.created_at,
        root_event_id: parent,
        retry_kind: "single",
        retry_parent_event_id: parent,
        retried_at: null,
        created_at: retried.created_at,
        updated_at: retried.created_at
      })
      expect(before?.["retried_at"]).toStrictEqual(retried.created_at)
      expect(before?.["state"]).toBe("FAILED")
      const queued = yield* sql`select * from deliveries where event_id = ${retried.id}`
      expect(queued).toStrictEqual([
        {
          event_id: retried.id,
          shard: 42,
          destination_id: connection.destination_id,
          connection_id: connection.id,
          due_at: retried.created_at,
          started_at: null,
          team_id: team,
          ordering_key: null,
          place: null,
          ready_at: null
        }
      ])
      const [created] = yield* sql`
        select sum(count)::int4 as count from counted
        where key_id = ${connection.id} and measure = 'created' and minute = date_trunc('minute', ${retried.created_at})`
      expect(created).toStrictEqual({ count: 1 })
    })
  )

  it.effect("A repeated retry creates one event, even if its connection was paused since", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = yield* Connections
      const connection = yield* createConnection()
      const parent = yield* insertEvent(connection, { state: "FAILED" })
      const id = newId(prefixes.event, Date.now())
      const [first, second] = yield* Effect.all([retry(parent, team, id), retry(parent, team, id)], {
        concurrency: "unbounded"
      })
      expect([first.id, second.id]).toStrictEqual([id, id])
      yield* connections.switch(team, connection.id, "pause")
      const third = yield* retry(parent, team, id)
      expect(third.id).toBe(id)
      const [{ count } = {}] = yield* sql<{ count: number }>`
        select sum(count)::int4 as count from counted where key_id = ${connection.id} and measure = 'created'`
      const events = yield* sql`select id from events where retry_parent_event_id = ${parent}`
      const queued = yield* sql`select event_id from deliveries where event_id = ${id}`
      expect([events, queued.length, count]).toStrictEqual([[{ id }], 1, 1])
      // Another retry of the same event is not a repetition, and an id of somebody else's retry is not taken for one's own.
      expect(yield* refusal(parent)).toBe("CONNECTION_PAUSED")
      const other = yield* insertEvent(connection, { state: "FAILED" })
      expect((yield* Effect.flip(retry(other, team, id))).code).toBe("CONNECTION_PAUSED")
    })
  )

  it.effect("A retry of a retry keeps the first ancestor", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connection = yield* createConnection()
      const root = yield* insertEvent(connection, { state: "SUCCESSFUL" })
      const first = yield* retry(root)
      yield* sql`update events set state = 'FAILED' where id = ${first.id}`
      const second = yield* retry(first.id)
      const [row] = yield* sql`select root_event_id, retry_parent_event_id from events where id = ${second.id}`
      expect(row).toStrictEqual({ root_event_id: root, retry_parent_event_id: first.id })
    })
  )

  it.effect("A retry goes to the connection's current destination", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const connection = yield* createConnection()
      const event = yield* insertEvent(connection, { state: "FAILED" })
      const destination = yield* createDestination()
      const moved = yield* connections.update(team, connection.id, (stored) =>
        Result.succeed({ ...stored, destination_id: destination.id })
      )
      expect(moved.destination_id).toBe(destination.id)
      expect(yield* retryDestination(team, event)).toBe(destination.id)
      expect((yield* retry(event)).destination_id).toBe(destination.id)
    })
  )

  it.effect("A retry is rejected while the event still waits for delivery", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const connection = yield* createConnection()
      const queued = yield* insertEvent(connection)
      const scheduled = yield* insertEvent(connection, { dueAt: new Date(Date.now() + 3_600_000) })
      expect(yield* refusal(queued)).toBe("EVENT_NOT_RETRYABLE")
      expect(yield* refusal(scheduled)).toBe("EVENT_NOT_RETRYABLE")
      // Cancelled by a disable that has been taken back: final, whether or not its row says so yet.
      yield* connections.switch(team, connection.id, "disable")
      yield* connections.switch(team, connection.id, "enable")
      expect((yield* retry(queued)).parent_event_id).toBe(queued)
    })
  )

  it.effect("A retry is rejected while its source, connection or destination is disabled or paused", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const destinations = yield* Destinations
      const connections = yield* Connections
      const connection = yield* createConnection()
      const { destination_id, id, source_id } = connection
      const event = yield* insertEvent(connection, { state: "FAILED" })
      yield* connections.switch(team, id, "pause")
      expect(yield* refusal(event)).toBe("CONNECTION_PAUSED")
      yield* connections.switch(team, id, "disable")
      expect(yield* refusal(event)).toBe("CONNECTION_DISABLED")
      yield* connections.switch(team, id, "enable")
      yield* destinations.switch(team, destination_id, "disable")
      expect(yield* refusal(event)).toBe("DESTINATION_DISABLED")
      yield* destinations.switch(team, destination_id, "enable")
      yield* sources.switch(team, source_id, "disable")
      expect(yield* refusal(event)).toBe("SOURCE_DISABLED")
      yield* sources.switch(team, source_id, "enable")
      yield* retry(event)
      yield* connections.delete(team, id)
      expect(yield* refusal(event)).toBe("CONNECTION_DISABLED")
    })
  )

  it.effect("A retry is rejected if the payload is deleted or the event does not exist", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      const event = yield* insertEvent(connection, { state: "FAILED", body: null })
      expect(yield* refusal(event)).toBe("PAYLOAD_UNAVAILABLE")
      const stored = yield* insertEvent(connection, { state: "FAILED", body: "" })
      expect((yield* retry(stored)).parent_event_id).toBe(stored)
      expect(yield* refusal(stored, otherTeam)).toBe("NOT_FOUND")
      expect(yield* refusal("evt_unknown")).toBe("NOT_FOUND")
      expect((yield* Effect.flip(retryDestination(otherTeam, stored))).code).toBe("NOT_FOUND")
    })
  )
})
