import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Sources } from "../src/control/Sources.ts"
import * as ControlPlane from "./controlPlane.ts"

const { connectionFields, createConnection, createDestination, createSource, otherTeam, team, concernedBy, versionOf } =
  ControlPlane

const change = (fields: Partial<ConnectionFields>) => (stored: ConnectionFields) =>
  Result.succeed({ ...stored, ...fields })

const state = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    disabled_by: string | null
    cancel_before: Date | null
    resumed_at: Date | null
  }>`select disabled_by, cancel_before, resumed_at from connections where id = ${id}`
  return row ?? expect.fail("no row")
})

layer(ControlPlane.layer, { excludeTestServices: true })("Connections in SQL", (it) => {
  it.effect("A stored connection is returned with its source and destination", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const destinations = yield* Destinations
      const connections = yield* Connections
      const source = yield* createSource()
      const destination = yield* createDestination()
      const id = newId(prefixes.connection, Date.now())
      const rules: ReadonlyArray<Rule> = [
        { type: "filter", body: { type: { $in: ["a", "b"] } } },
        { type: "delay", delay: 5_000 }
      ]
      const fields = connectionFields({ source_id: source.id, destination_id: destination.id, name: "route", rules })
      const { record: connection, ...concerned } = yield* concernedBy((command) =>
        connections.create(team, id, fields, command)
      )
      expect(connection).toStrictEqual({
        id,
        team_id: team,
        name: "route",
        description: null,
        source_id: source.id,
        destination_id: destination.id,
        source: yield* sources.get(team, source.id),
        destination: yield* destinations.get(team, destination.id),
        rules,
        ordering: null,
        disabled_at: null,
        paused_at: null,
        created_at: connection.created_at,
        updated_at: connection.created_at
      })
      expect(concerned).toStrictEqual({ destinations: [], cancelled: [] })
      expect(yield* connections.get(team, id)).toStrictEqual(connection)
      expect(yield* connections.findByName(team, "route", { source_id: source.id })).toBe(id)
      expect(yield* connections.findByName(team, "route", { source_id: "src_other" })).toBe(null)
      expect(yield* connections.create(team, id, fields)).toStrictEqual(connection)
    })
  )

  it.effect("A connection with a missing or another team's source or destination is rejected", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const destinations = yield* Destinations
      const connections = yield* Connections
      const source = yield* createSource()
      const destination = yield* createDestination()
      const foreignSource = yield* sources.create(
        otherTeam,
        newId(prefixes.source, Date.now()),
        ControlPlane.sourceFields()
      )
      const foreignDestination = yield* destinations.create(
        otherTeam,
        newId(prefixes.destination, Date.now()),
        ControlPlane.destinationFields()
      )
      const deleted = yield* createSource()
      yield* sources.delete(team, deleted.id)
      const existing = yield* createConnection()
      const refused = Effect.fnUntraced(function* (source_id: string, destination_id: string, missing: object) {
        const create = Effect.flip(createConnection({ source_id, destination_id }))
        const move = Effect.flip(connections.update(team, existing.id, change({ source_id, destination_id })))
        for (const { code, data } of [yield* create, yield* move]) {
          expect({ code, data }).toStrictEqual({ code: "NOT_FOUND", data: missing })
        }
      })
      for (const { id } of [{ id: "src_unknown" }, foreignSource, deleted]) {
        yield* refused(id, destination.id, { resource_type: "source", id })
      }
      for (const { id } of [{ id: "des_unknown" }, foreignDestination]) {
        yield* refused(source.id, id, { resource_type: "destination", id })
      }
      expect(yield* versionOf(foreignSource.id)).toBe(1)
    })
  )

  it.effect("A connection name that the team already uses is rejected, for any source", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const exits = yield* Effect.forEach(
        Array.from({ length: 4 }, () => createConnection({ name: "contended" })),
        Effect.exit,
        { concurrency: "unbounded" }
      )
      const winner = exits.find(Exit.isSuccess)?.value
      const expected = fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", {
        id: winner?.id ?? "",
        resource_type: "connection"
      })
      expect(exits.filter(Exit.isFailure).length).toBe(3)
      for (const exit of exits.filter(Exit.isFailure)) expect(yield* Effect.flip(exit)).toStrictEqual(expected)
      const other = yield* createConnection()
      const renamed = yield* Effect.flip(connections.update(team, other.id, change({ name: "contended" })))
      expect(renamed).toStrictEqual(expected)
    })
  )

  it.effect("A connection is not found by another team, or after its deletion", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const assertMissing = Effect.fnUntraced(function* (teamId: string) {
        const calls: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
          connections.get(teamId, id),
          connections.update(teamId, id, change({})),
          connections.switch(teamId, id, "disable"),
          connections.switch(teamId, id, "enable"),
          connections.switch(teamId, id, "pause"),
          connections.switch(teamId, id, "unpause"),
          connections.delete(teamId, id)
        ]
        for (const call of calls) {
          const { code, data } = yield* Effect.flip(call)
          expect({ code, data }).toStrictEqual({ code: "NOT_FOUND", data: { resource_type: "connection", id } })
        }
      })
      yield* assertMissing(otherTeam)
      expect(yield* versionOf(source_id)).toBe(2)
      expect(yield* concernedBy((command) => connections.delete(team, id, command))).toStrictEqual({
        record: undefined,
        destinations: [destination_id],
        cancelled: [id]
      })
      expect(yield* versionOf(source_id)).toBe(3)
      yield* assertMissing(team)
    })
  )

  it.effect("A connection can be paused and unpaused, and a repetition has no effect", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      const paused = yield* concernedBy((command) => connections.switch(team, id, "pause", command))
      expect(paused.record.paused_at ?? "").toMatch(/Z$/)
      expect(paused.cancelled).toStrictEqual([])
      const version = yield* versionOf(source_id)
      // The repeated command changes nothing, but the destination is notified again: the first notification may have been lost.
      expect(yield* concernedBy((command) => connections.switch(team, id, "pause", command))).toStrictEqual(paused)
      expect(paused.destinations).toStrictEqual([paused.record.destination_id])
      const unpaused = yield* concernedBy((command) => connections.switch(team, id, "unpause", command))
      expect(unpaused.record.paused_at).toBe(null)
      expect((yield* state(id)).resumed_at?.toISOString()).toBe(unpaused.record.updated_at)
      expect(yield* concernedBy((command) => connections.switch(team, id, "unpause", command))).toStrictEqual(unpaused)
      expect(yield* versionOf(source_id)).toBe((version ?? 0) + 1)
    })
  )

  it.effect("Disabling ends a pause and cancels events, and enabling cancels older events", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id } = yield* createConnection()
      yield* connections.switch(team, id, "pause")
      const disabled = yield* concernedBy((command) => connections.switch(team, id, "disable", command))
      expect(disabled.cancelled).toStrictEqual([id])
      expect(disabled.record.paused_at).toBe(null)
      expect((yield* state(id)).cancel_before?.toISOString()).toBe(disabled.record.disabled_at)
      expect(yield* concernedBy((command) => connections.switch(team, id, "disable", command))).toStrictEqual({
        ...disabled,
        cancelled: []
      })

      expect((yield* Effect.flip(connections.switch(team, id, "pause"))).code).toBe("CONNECTION_DISABLED")
      const enabled = yield* concernedBy((command) => connections.switch(team, id, "enable", command))
      expect(enabled.record.disabled_at).toBe(null)
      expect(enabled.cancelled).toStrictEqual([id])
      expect((yield* state(id)).cancel_before?.toISOString()).toBe(enabled.record.updated_at)
      // Enabling what is enabled must not cancel what waits.
      expect(yield* concernedBy((command) => connections.switch(team, id, "enable", command))).toStrictEqual({
        ...enabled,
        cancelled: []
      })
    })
  )

  it.effect("An update of the two times has the same effect as the command for it", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id } = yield* createConnection()
      const at = new Date("2026-01-01T00:00:00.000Z")
      const paused = yield* connections.update(team, id, change({ paused_at: at }))
      expect(paused.paused_at).toBe(at.toISOString())
      const resumed = yield* connections.update(team, id, change({ paused_at: null }))
      expect((yield* state(id)).resumed_at?.toISOString()).toBe(resumed.updated_at)
      yield* connections.update(team, id, change({ paused_at: at }))
      const disabled = yield* connections.update(team, id, change({ disabled_at: at }))
      expect(disabled.disabled_at).toBe(at.toISOString())
      expect(disabled.paused_at).toBe(null)
      // Cancelled is what was there when it happened, not what was there at the time written.
      expect((yield* state(id)).cancel_before?.toISOString()).toBe(disabled.updated_at)
      const refused = yield* Effect.flip(connections.update(team, id, change({ paused_at: at })))
      expect(refused.code).toBe("CONNECTION_DISABLED")
      const both = yield* connections.update(team, id, change({ disabled_at: null, paused_at: at }))
      expect([both.disabled_at, both.paused_at]).toStrictEqual([null, at.toISOString()])
      const created = yield* Effect.flip(createConnection({ disabled_at: at, paused_at: at }))
      expect(created.code).toBe("CONNECTION_DISABLED")
    })
  )

  it.effect("An update without changes keeps a connection disabled by its source", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const sources = yield* Sources
      const { id, source_id } = yield* createConnection()
      yield* sources.switch(team, source_id, "disable")
      yield* connections.update(team, id, change({ description: "written back" }))
      expect((yield* state(id)).disabled_by).toBe("source")
      // Moved away, nobody would switch it on again but its owner.
      const elsewhere = yield* createSource()
      yield* connections.update(team, id, change({ source_id: elsewhere.id }))
      expect((yield* state(id)).disabled_by).toBe(null)
    })
  )

  it.effect("Moving a connection affects both sources and both destinations", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const source = yield* createSource()
      const destination = yield* createDestination()
      const moved = yield* concernedBy((command) =>
        connections.update(team, id, change({ source_id: source.id, destination_id: destination.id }), command)
      )
      expect(moved.record.source.id).toBe(source.id)
      expect(moved.record.destination.id).toBe(destination.id)
      expect(moved.destinations).toStrictEqual([destination_id, destination.id])
      expect(yield* versionOf(source_id)).toBe(3)
      expect(yield* versionOf(source.id)).toBe(2)
    })
  )

  it.effect("A connection that was moved between a thousand pairs of ends can only be moved back to one of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const [there, beyond] = [yield* createDestination(), yield* createDestination()]
      yield* sql`insert into connection_links (connection_id, source_id, destination_id, team_id)
        select ${id}, ${source_id}, 'des_' || n, ${team} from generate_series(1, 998) n`
      yield* connections.update(team, id, change({ destination_id: there.id }))
      const refused = yield* Effect.flip(connections.update(team, id, change({ destination_id: beyond.id })))
      expect(refused).toMatchObject({ code: "LIMIT_EXCEEDED", data: { limit: 1_000 } })
      expect((yield* connections.get(team, id)).destination_id).toBe(there.id)
      yield* connections.update(team, id, change({ destination_id }))
      expect((yield* connections.get(team, id)).destination_id).toBe(destination_id)
    })
  )

  it.effect("Every change of a connection raises its source's version once", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      const changes: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
        connections.update(team, id, change({ rules: [{ type: "delay", delay: 1 }] })),
        connections.switch(team, id, "pause"),
        connections.switch(team, id, "unpause"),
        connections.switch(team, id, "disable"),
        connections.switch(team, id, "enable"),
        connections.delete(team, id)
      ]
      let version = (yield* versionOf(source_id)) ?? 0
      for (const change of changes) {
        yield* change
        expect(yield* versionOf(source_id)).toBe(++version)
      }
    })
  )

  it.effect("Concurrent commands end in a state that one order of them explains", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const destinations = yield* Destinations
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const others = yield* Effect.forEach([1, 2, 3], () => createConnection({ source_id, destination_id }))
      const round = [
        sources.switch(team, source_id, "disable"),
        connections.switch(team, id, "disable"),
        destinations.switch(team, destination_id, "disable"),
        connections.update(team, id, change({ rules: [{ type: "delay", delay: 7 }] })),
        ...others.map((other) => connections.update(team, other.id, change({ description: "busy" }))),
        destinations.switch(team, destination_id, "enable"),
        sources.switch(team, source_id, "enable"),
        connections.switch(team, id, "enable")
      ]
      yield* Effect.forEach(Array.from({ length: 6 }), () => Effect.all(round, { concurrency: "unbounded" }))
      // Whoever was last, no marker is left without its cause.
      yield* sources.switch(team, source_id, "enable")
      const rows = yield* sql<{ off: boolean; disabled_by: string | null }>`
        select disabled_at is not null as off, disabled_by from connections where source_id = ${source_id}`
      expect(rows.length).toBe(4)
      for (const row of rows) expect(row.disabled_by).toBeNull()
      expect((yield* connections.get(team, id)).rules).toStrictEqual([{ type: "delay", delay: 7 }])
    })
  )
})
