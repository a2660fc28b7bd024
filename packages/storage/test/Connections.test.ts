import { assert, layer } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { ConnectionFields } from "@tidegate/resources/Connection"
import { Connections } from "../src/Connections.ts"
import { Destinations } from "../src/Destinations.ts"
import { Sources } from "../src/Sources.ts"
import * as ControlPlane from "./controlPlane.ts"

const { connectionFields, createConnection, createDestination, createSource, otherTeam, team, told, versionOf } =
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
  return row ?? assert.fail("no row")
})

layer(ControlPlane.layer, { excludeTestServices: true })("Connections", (it) => {
  it.effect("stores a connection and shows it with its source and destination", () =>
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
      const { record: connection, ...concerned } = yield* told((command) =>
        connections.create(team, id, fields, command)
      )
      assert.deepStrictEqual(connection, {
        id,
        team_id: team,
        name: "route",
        description: null,
        source_id: source.id,
        destination_id: destination.id,
        source: yield* sources.get(team, source.id),
        destination: yield* destinations.get(team, destination.id),
        rules,
        disabled_at: null,
        paused_at: null,
        created_at: connection.created_at,
        updated_at: connection.created_at
      })
      assert.deepStrictEqual(concerned, { destinations: [destination.id], cancelled: [] })
      assert.deepStrictEqual(yield* connections.get(team, id), connection)
      assert.strictEqual(yield* connections.findByName(team, "route", { source_id: source.id }), id)
      assert.strictEqual(yield* connections.findByName(team, "route", { source_id: "src_other" }), null)
      assert.deepStrictEqual(yield* connections.create(team, id, fields), connection)
    })
  )

  it.effect("refuses ends that are not there, or another team's", () =>
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
          assert.deepStrictEqual({ code, data }, { code: "NOT_FOUND", data: missing })
        }
      })
      for (const { id } of [{ id: "src_unknown" }, foreignSource, deleted]) {
        yield* refused(id, destination.id, { resource_type: "source", id })
      }
      for (const { id } of [{ id: "des_unknown" }, foreignDestination]) {
        yield* refused(source.id, id, { resource_type: "destination", id })
      }
      assert.strictEqual(yield* versionOf(foreignSource.id), 1)
    })
  )

  it.effect("refuses a name that is taken in the team, whatever the source", () =>
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
      assert.strictEqual(exits.filter(Exit.isFailure).length, 3)
      for (const exit of exits.filter(Exit.isFailure)) assert.deepStrictEqual(yield* Effect.flip(exit), expected)
      const other = yield* createConnection()
      const renamed = yield* Effect.flip(connections.update(team, other.id, change({ name: "contended" })))
      assert.deepStrictEqual(renamed, expected)
    })
  )

  it.effect("is not there for another team, and not once deleted", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const assertMissing = Effect.fnUntraced(function* (teamId: string) {
        const calls: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
          connections.get(teamId, id),
          connections.update(teamId, id, change({})),
          connections.turn(teamId, id, "disable"),
          connections.turn(teamId, id, "enable"),
          connections.turn(teamId, id, "pause"),
          connections.turn(teamId, id, "unpause"),
          connections.delete(teamId, id)
        ]
        for (const call of calls) {
          const { code, data } = yield* Effect.flip(call)
          assert.deepStrictEqual({ code, data }, { code: "NOT_FOUND", data: { resource_type: "connection", id } })
        }
      })
      yield* assertMissing(otherTeam)
      assert.strictEqual(yield* versionOf(source_id), 2)
      assert.deepStrictEqual(yield* told((command) => connections.delete(team, id, command)), {
        record: undefined,
        destinations: [destination_id],
        cancelled: [id]
      })
      assert.strictEqual(yield* versionOf(source_id), 3)
      yield* assertMissing(team)
    })
  )

  it.effect("pauses and unpauses, again without effect", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      const paused = yield* told((command) => connections.turn(team, id, "pause", command))
      assert.match(paused.record.paused_at ?? "", /Z$/)
      assert.deepStrictEqual(paused.cancelled, [])
      const version = yield* versionOf(source_id)
      // Nothing new, but the destination is told again: the last one may have failed to tell it.
      assert.deepStrictEqual(yield* told((command) => connections.turn(team, id, "pause", command)), paused)
      assert.deepStrictEqual(paused.destinations, [paused.record.destination_id])
      const unpaused = yield* told((command) => connections.turn(team, id, "unpause", command))
      assert.strictEqual(unpaused.record.paused_at, null)
      assert.strictEqual((yield* state(id)).resumed_at?.toISOString(), unpaused.record.updated_at)
      assert.deepStrictEqual(yield* told((command) => connections.turn(team, id, "unpause", command)), unpaused)
      assert.strictEqual(yield* versionOf(source_id), (version ?? 0) + 1)
    })
  )

  it.effect("disabling ends a pause and cancels; enabling cancels what is older", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id } = yield* createConnection()
      yield* connections.turn(team, id, "pause")
      const disabled = yield* told((command) => connections.turn(team, id, "disable", command))
      assert.deepStrictEqual(disabled.cancelled, [id])
      assert.strictEqual(disabled.record.paused_at, null)
      assert.strictEqual((yield* state(id)).cancel_before?.toISOString(), disabled.record.disabled_at)
      assert.deepStrictEqual(yield* told((command) => connections.turn(team, id, "disable", command)), {
        ...disabled,
        cancelled: []
      })

      assert.strictEqual((yield* Effect.flip(connections.turn(team, id, "pause"))).code, "CONNECTION_DISABLED")
      const enabled = yield* told((command) => connections.turn(team, id, "enable", command))
      assert.strictEqual(enabled.record.disabled_at, null)
      assert.deepStrictEqual(enabled.cancelled, [id])
      assert.strictEqual((yield* state(id)).cancel_before?.toISOString(), enabled.record.updated_at)
      // Enabling what is enabled must not cancel what waits.
      assert.deepStrictEqual(yield* told((command) => connections.turn(team, id, "enable", command)), {
        ...enabled,
        cancelled: []
      })
    })
  )

  it.effect("an update that sets the two times is the transition that they stand for", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id } = yield* createConnection()
      const at = new Date("2026-01-01T00:00:00.000Z")
      const paused = yield* connections.update(team, id, change({ paused_at: at }))
      assert.strictEqual(paused.paused_at, at.toISOString())
      const resumed = yield* connections.update(team, id, change({ paused_at: null }))
      assert.strictEqual((yield* state(id)).resumed_at?.toISOString(), resumed.updated_at)
      yield* connections.update(team, id, change({ paused_at: at }))
      const disabled = yield* connections.update(team, id, change({ disabled_at: at }))
      assert.strictEqual(disabled.disabled_at, at.toISOString())
      assert.strictEqual(disabled.paused_at, null)
      // Cancelled is what was there when it happened, not what was there at the time written.
      assert.strictEqual((yield* state(id)).cancel_before?.toISOString(), disabled.updated_at)
      const refused = yield* Effect.flip(connections.update(team, id, change({ paused_at: at })))
      assert.strictEqual(refused.code, "CONNECTION_DISABLED")
      const both = yield* connections.update(team, id, change({ disabled_at: null, paused_at: at }))
      assert.deepStrictEqual([both.disabled_at, both.paused_at], [null, at.toISOString()])
      const created = yield* Effect.flip(createConnection({ disabled_at: at, paused_at: at }))
      assert.strictEqual(created.code, "CONNECTION_DISABLED")
    })
  )

  it.effect("written back as it was read, it stays disabled by its source", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const sources = yield* Sources
      const { id, source_id } = yield* createConnection()
      yield* sources.turn(team, source_id, "disable")
      yield* connections.update(team, id, change({ description: "written back" }))
      assert.strictEqual((yield* state(id)).disabled_by, "source")
      // Moved away, nobody would switch it on again but its owner.
      const elsewhere = yield* createSource()
      yield* connections.update(team, id, change({ source_id: elsewhere.id }))
      assert.strictEqual((yield* state(id)).disabled_by, null)
    })
  )

  it.effect("moving it concerns both sources and both destinations", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const source = yield* createSource()
      const destination = yield* createDestination()
      const moved = yield* told((command) =>
        connections.update(team, id, change({ source_id: source.id, destination_id: destination.id }), command)
      )
      assert.strictEqual(moved.record.source.id, source.id)
      assert.strictEqual(moved.record.destination.id, destination.id)
      assert.deepStrictEqual(moved.destinations, [destination_id, destination.id])
      assert.strictEqual(yield* versionOf(source_id), 3)
      assert.strictEqual(yield* versionOf(source.id), 2)
    })
  )

  it.effect("every kind of change raises its source's version once", () =>
    Effect.gen(function* () {
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      const changes: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
        connections.update(team, id, change({ rules: [{ type: "delay", delay: 1 }] })),
        connections.turn(team, id, "pause"),
        connections.turn(team, id, "unpause"),
        connections.turn(team, id, "disable"),
        connections.turn(team, id, "enable"),
        connections.delete(team, id)
      ]
      let version = (yield* versionOf(source_id)) ?? 0
      for (const change of changes) {
        yield* change
        assert.strictEqual(yield* versionOf(source_id), ++version)
      }
    })
  )

  it.effect("commands at once from everywhere come to a state that one order explains", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const destinations = yield* Destinations
      const connections = yield* Connections
      const { destination_id, id, source_id } = yield* createConnection()
      const others = yield* Effect.forEach([1, 2, 3], () => createConnection({ source_id, destination_id }))
      const round = [
        sources.turn(team, source_id, "disable"),
        connections.turn(team, id, "disable"),
        destinations.turn(team, destination_id, "disable"),
        connections.update(team, id, change({ rules: [{ type: "delay", delay: 7 }] })),
        ...others.map((other) => connections.update(team, other.id, change({ description: "busy" }))),
        destinations.turn(team, destination_id, "enable"),
        sources.turn(team, source_id, "enable"),
        connections.turn(team, id, "enable")
      ]
      yield* Effect.forEach(Array.from({ length: 6 }), () => Effect.all(round, { concurrency: "unbounded" }))
      // Whoever was last, no marker is left without its cause.
      yield* sources.turn(team, source_id, "enable")
      const rows = yield* sql<{ off: boolean; disabled_by: string | null }>`
        select disabled_at is not null as off, disabled_by from connections where source_id = ${source_id}`
      assert.strictEqual(rows.length, 4)
      for (const row of rows) assert.isNull(row.disabled_by)
      assert.deepStrictEqual((yield* connections.get(team, id)).rules, [{ type: "delay", delay: 7 }])
    })
  )
})
