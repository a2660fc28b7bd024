import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { isId, newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "../src/control/Connections.ts"
import { Secrets } from "../src/secrets/Secrets.ts"
import { transaction } from "../src/Transaction.ts"
import { holdTransformations, upsertTransformation } from "../src/control/TransformationLinks.ts"
import type { TransformationFields } from "@tidegate/resources/Transformation"
import { loadTransformation, Transformations } from "../src/control/Transformations.ts"
import * as ControlPlane from "./controlPlane.ts"
import { isWaiting } from "./isWaiting.ts"
import { addQuarters } from "./quarterCounts.ts"

const { createConnection, otherTeam, team, unique } = ControlPlane

const world = Transformations.layer.pipe(Layer.provideMerge(ControlPlane.layer))

const code = 'addHandler("transform", (request) => request)'
const noBins = [0, 0, 0, 0, 0, 0]
const fresh = () => newId(prefixes.transformation, Date.now())
const fieldsOf = (fields: Partial<TransformationFields> = {}): TransformationFields => ({
  name: unique("transformation"),
  code,
  env: {},
  isolation: null,
  ...fields
})
const create = (fields?: Partial<TransformationFields>) =>
  Effect.flatMap(Transformations, (transformations) => transformations.create(team, fresh(), fieldsOf(fields)))

/** A change of what is stored that leaves the rest, the variables included. */
const change = (fields: Partial<TransformationFields>) => (stored: TransformationFields) =>
  Result.succeed({ ...stored, env: "unchanged" as const, ...fields })

const upsert = Effect.fnUntraced(function* (fields: TransformationFields, teamId: string = team) {
  return yield* upsertTransformation(yield* SqlClient.SqlClient, yield* Secrets, teamId, fields)
})

layer(world, { excludeTestServices: true })("Transformations in SQL", (it) => {
  it.effect("A stored transformation is returned", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const id = fresh()
      const created = yield* transformations.create(team, id, {
        name: "shape",
        code,
        env: { TENANT: "a" },
        isolation: null
      })
      expect(created).toStrictEqual({
        id,
        team_id: team,
        name: "shape",
        code,
        env: { TENANT: "a" },
        runtime: "js-v1",
        code_hash: createHash("sha256").update(code, "utf8").digest("hex"),
        isolation: null,
        isolation_reason: null,
        deleted_at: null,
        executions_24h_count: 0,
        executions_24h_successful_count: 0,
        executions_24h_failed_count: 0,
        executions_24h_successful_bins: noBins,
        executions_24h_failed_bins: noBins,
        connections_count: 0,
        created_at: created.created_at,
        updated_at: created.created_at
      })
      expect(yield* transformations.get(team, id)).toStrictEqual(created)
      expect(yield* transformations.findByName(team, "shape")).toBe(id)
      expect(yield* transformations.findByName(otherTeam, "shape")).toBe(null)
    })
  )

  it.effect("Environment variables are stored encrypted and decrypted for a run", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const { code_hash, id, name } = yield* create({ env: { KEY: "a-long-secret" } })
      const stored = Effect.map(
        sql<{ env: string | null }>`select env from transformations where id = ${id}`,
        ([row]) => row?.env
      )
      const before = yield* stored
      expect(before ?? "").toMatch(/^v1\./)
      expect(before ?? "").not.toContain("a-long-secret")
      const loaded = { id, name, code, code_hash, isolation: "sealed", env: { KEY: "a-long-secret" } }
      expect(yield* loadTransformation(team, id)).toStrictEqual(loaded)
      // Left alone, the ciphertext stays.
      yield* transformations.update(team, id, change({ code: `${code} ` }))
      expect(yield* stored).toBe(before)
      yield* transformations.update(team, id, change({ env: {} }))
      expect(yield* stored).toBe(null)
      expect(yield* loadTransformation(otherTeam, id)).toBe(null)
      yield* transformations.delete(team, id)
      expect(yield* loadTransformation(team, id)).toBe(null)
    })
  )

  it.effect("A transformation with unreadable variables does not run, but can be read and repaired", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const { id } = yield* create({ env: { KEY: "secret" } })
      const other = yield* create({ env: { KEY: "of another" } })
      const unreadable = ["v1.gone.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA", "nonsense"]
      // The other one's variables do not open in this one's place.
      const [foreign] = yield* sql<{ env: string }>`select env from transformations where id = ${other.id}`
      for (const env of [...unreadable, foreign!.env]) {
        yield* sql`update transformations set env = ${env} where id = ${id}`
        expect((yield* Effect.flip(loadTransformation(team, id)))._tag).toBe("SecretUnreadable")
        expect((yield* transformations.get(team, id)).env).toStrictEqual({})
      }
      yield* transformations.update(team, id, change({ env: { KEY: "new" } }))
      expect((yield* loadTransformation(team, id))?.env).toStrictEqual({ KEY: "new" })
    })
  )

  it.effect("A partial change of a transformation keeps the rest, and the hash follows the code", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const created = yield* create({ env: { A: "1" } })
      const changed = yield* transformations.update(team, created.id, change({ code: "// other" }))
      const code_hash = createHash("sha256").update("// other").digest("hex")
      const expected = { code: "// other", code_hash, updated_at: changed.updated_at }
      expect(changed).toStrictEqual(Object.assign(created, expected))
    })
  )

  it.effect("A transformation name that is taken is rejected with the id of its owner", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const holder = yield* create({ name: "taken" })
      const other = yield* create()
      const expected = fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", {
        id: holder.id,
        resource_type: "transformation"
      })
      expect(yield* Effect.flip(create({ name: "taken" }))).toStrictEqual(expected)
      expect(yield* Effect.flip(transformations.update(team, other.id, change({ name: "taken" })))).toStrictEqual(
        expected
      )
      yield* transformations.create(otherTeam, fresh(), fieldsOf({ name: "taken" }))
      yield* transformations.delete(team, holder.id)
      expect((yield* transformations.update(team, other.id, change({ name: "taken" }))).name).toBe("taken")
    })
  )

  it.effect("A repeated creation of a transformation changes nothing", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const id = fresh()
      const fields = fieldsOf()
      const first = yield* transformations.create(team, id, fields)
      expect(yield* transformations.create(team, id, fields)).toStrictEqual(first)
      yield* transformations.delete(team, id)
      expect((yield* Effect.flip(transformations.create(team, id, fields))).code).toBe("NOT_FOUND")
    })
  )

  it.effect("A transformation is not found by another team, or after its deletion", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const { id } = yield* create()
      const assertMissing = Effect.fnUntraced(function* (teamId: string) {
        const calls: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
          transformations.get(teamId, id),
          transformations.update(teamId, id, change({})),
          transformations.delete(teamId, id)
        ]
        for (const call of calls) {
          const { code: found, data } = yield* Effect.flip(call)
          expect({ found, data }).toStrictEqual({ found: "NOT_FOUND", data: { resource_type: "transformation", id } })
        }
      })
      yield* assertMissing(otherTeam)
      yield* transformations.delete(team, id)
      yield* assertMissing(team)
    })
  )

  it.effect("A transformation that connections use is not deleted, and they are listed", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const connections = yield* Connections
      const { id } = yield* create()
      const other = yield* create()
      const first = yield* createConnection({ rules: [{ type: "transform", transformation_id: id }] })
      const { destination_id, source_id } = first
      const users = [first]
      for (let i = 0; i < 10; i++) {
        const rules = [{ type: "transform" as const, transformation_id: id }]
        users.push(yield* createConnection({ source_id, destination_id, rules }))
      }
      yield* createConnection({
        source_id,
        destination_id,
        rules: [{ type: "transform", transformation_id: other.id }]
      })
      expect((yield* transformations.get(team, id)).connections_count).toBe(11)
      const refused = yield* Effect.flip(transformations.delete(team, id))
      expect(refused.code).toBe("RESOURCE_IN_USE")
      expect(refused.data).toStrictEqual({
        id,
        resource_type: "transformation",
        connections: users
          .map((user) => user.id)
          .toSorted()
          .slice(0, 10)
      })
      // A disabled connection may be enabled again, so it still counts; a deleted one does not, nor one without the rule.
      yield* connections.switch(team, first.id, "disable")
      for (const user of users.slice(1, 6)) yield* connections.delete(team, user.id)
      for (const user of users.slice(6)) {
        yield* connections.update(team, user.id, (stored) => Result.succeed({ ...stored, rules: [] }))
      }
      const again = yield* Effect.flip(transformations.delete(team, id))
      expect(again.data).toStrictEqual({ id, resource_type: "transformation", connections: [first.id] })
      yield* connections.delete(team, first.id)
      yield* transformations.delete(team, id)
    })
  )

  it.effect("A delete waits for a connection that is about to use the transformation", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const { id } = yield* create()
      const connection = yield* createConnection()
      const held = yield* Deferred.make<void>()
      const commit = yield* Deferred.make<void>()
      const writer = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* holdTransformations(sql, team, [id])
            yield* Deferred.succeed(held, undefined)
            yield* Deferred.await(commit)
            const rules = JSON.stringify([{ type: "transform", transformation_id: id }])
            yield* sql`update connections set rules = ${rules} where id = ${connection.id}`
          })
        )
      )
      yield* Deferred.await(held)
      const refused = yield* Effect.forkChild(Effect.flip(transformations.delete(team, id)))
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(writer)
      expect((yield* Fiber.join(refused)).code).toBe("RESOURCE_IN_USE")
    })
  )

  it.effect("A connection cannot use a missing, deleted or another team's transformation", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const here = yield* create()
      const foreign = yield* transformations.create(otherTeam, fresh(), fieldsOf())
      const deleted = yield* create()
      yield* transformations.delete(team, deleted.id)
      yield* holdTransformations(sql, team, [])
      yield* holdTransformations(sql, team, [here.id])
      for (const id of ["trs_unknown", foreign.id, deleted.id]) {
        const { code: found, data } = yield* Effect.flip(
          Effect.catchTag(holdTransformations(sql, team, [here.id, id]), "SqlError", Effect.die)
        )
        expect({ found, data }).toStrictEqual({ found: "NOT_FOUND", data: { resource_type: "transformation", id } })
      }
    })
  )

  it.effect(
    "A transformation inside a rule is created, later replaced by name, with its connection or not at all",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const transformations = yield* Transformations
        const fields = fieldsOf({ env: { A: "1" } })
        const id = yield* upsert(fields)
        expect(isId(prefixes.transformation, id)).toBe(true)
        expect(yield* upsert({ ...fields, code: "// new", env: { B: "2" } })).toBe(id)
        const replaced = yield* transformations.get(team, id)
        expect([replaced.code, replaced.env]).toStrictEqual(["// new", { B: "2" }])
        expect((yield* loadTransformation(team, id))?.env).toStrictEqual({ B: "2" })
        expect(yield* upsert(fields, otherTeam)).not.toBe(id)
        const lost = fieldsOf()
        yield* Effect.exit(sql.withTransaction(Effect.andThen(upsert(lost), Effect.fail("the connection is refused"))))
        expect(yield* transformations.findByName(team, lost.name)).toBe(null)
      })
  )

  it.effect("Concurrent connections with a transformation of the same name create only one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const fields = fieldsOf()
      const ids = yield* Effect.all(
        Array.from({ length: 5 }, () => transaction(sql)(upsert(fields))),
        { concurrency: "unbounded" }
      )
      expect(new Set(ids).size).toBe(1)
      expect(yield* transformations.findByName(team, fields.name)).toBe(ids[0])
    })
  )

  it.effect("Executions of the last 24 hours are counted in six bins on request", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const transformations = yield* Transformations
      const { id } = yield* create()
      for (const [measure, minutes, count] of [
        ["execution_successful", 5, 7],
        ["execution_successful", 23 * 60, 3],
        ["execution_failed", 5, 2],
        ["execution_failed", 25 * 60, 100]
      ] as const) {
        yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
          values (${id}, ${measure}, date_trunc('minute', now()) - ${`${minutes} minutes`}::interval, 1, ${team}, ${count})`
      }
      yield* addQuarters
      const counted = yield* transformations.get(team, id)
      expect(counted).toMatchObject({
        executions_24h_count: 12,
        executions_24h_successful_count: 10,
        executions_24h_failed_count: 2,
        executions_24h_successful_bins: [3, 0, 0, 0, 0, 7],
        executions_24h_failed_bins: [0, 0, 0, 0, 0, 2]
      })
      const rows = yield* sql<never>`select * from transformations where id = ${id}`
      const [uncounted] = yield* transformations.records(rows, { counts: false })
      expect(uncounted).toMatchObject({ executions_24h_count: 0, executions_24h_successful_bins: noBins })
      expect(yield* transformations.records([], { counts: true })).toStrictEqual([])
    })
  )
})
