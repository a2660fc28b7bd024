import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { codeHash, Transformations } from "@tidegate/storage/control/Transformations"
import { transformation } from "@tidegate/resources/Transformation"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import type { Members } from "@tidegate/resources/Input"
import * as TransformationBehaviour from "../src/Transformation/TransformationBehaviour.ts"
import { TransformationEntity } from "../src/Transformation/TransformationProtocol.ts"
import * as FakeSandbox from "./FakeSandbox.ts"

const { createConnection, otherTeam, team: team_id, unique } = ControlPlane

const world = TransformationBehaviour.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(TestRunner.layer, FakeSandbox.layer, Transformations.layer)),
  Layer.provideMerge(ControlPlane.layer)
)

const fresh = () => newId(prefixes.transformation, Date.now())
const owner = (id: string) => Effect.map(TransformationEntity.client, (client) => client(id))
const create = Effect.fnUntraced(function* (input: Members = {}) {
  const target = yield* owner(fresh())
  return yield* target.Create({ team_id, input: { name: unique("transformation"), code: "first", ...input } })
})

const codeOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E | GatewayError, R>) =>
  Effect.map(Effect.flip(effect), (error) => ("code" in error ? error.code : error._tag))

layer(world, { excludeTestServices: true })("Actor of a transformation", (it) => {
  it.effect("A transformation is created, partly changed, upserted and deleted by its actor", () =>
    Effect.gen(function* () {
      const created = yield* create({ env: { A: "1" } })
      expect(created).toMatchObject({ code: "first", code_hash: codeHash("first"), env: { A: "1" } })
      const target = yield* owner(created.id)
      const changed = yield* target.Update({ team_id, input: { code: "second" } })
      expect(changed).toMatchObject({ name: created.name, code: "second", env: { A: "1" } })
      expect(yield* target.Update({ team_id, input: { env: null } })).toMatchObject({ code: "second", env: {} })
      yield* target.Update({ team_id, input: { env: { B: "2" } } })
      // A record that is written back as it was read changes nothing.
      const read = yield* target.Update({ team_id, input: {} })
      const { updated_at, ...back } = yield* target.Update({ team_id, input: { ...read } })
      expect({ ...back, updated_at: read.updated_at }).toStrictEqual(read)
      expect(Date.parse(updated_at)).toBeGreaterThanOrEqual(Date.parse(read.updated_at))
      const replaced = yield* target.Upsert({ team_id, input: { name: created.name, code: "third" } })
      expect(replaced).toMatchObject({ code: "third", env: { B: "2" } })
      // What is wrong by itself is found before it is sent: such a message cannot be.
      expect(Result.isFailure(transformation.write.judge({ name: "no code" }))).toBe(true)
      expect(yield* codeOf(target.Update({ team_id: otherTeam, input: {} }))).toBe("NOT_FOUND")
      expect(yield* codeOf(target.Delete({ team_id: otherTeam }))).toBe("NOT_FOUND")
      expect(yield* target.Delete({ team_id })).toStrictEqual({ id: created.id })
      expect(yield* codeOf(target.Delete({ team_id }))).toBe("NOT_FOUND")
    })
  )

  it.effect("Code that does not compile or could not be checked is not stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const created = yield* create()
      const target = yield* owner(created.id)
      const before = yield* sql`select * from transformations order by id`
      const input = { name: unique("transformation"), code: "syntax" }
      for (const call of [
        Effect.flatMap(owner(fresh()), (other) => other.Create({ team_id, input })),
        target.Update({ team_id, input: { code: "syntax" } }),
        target.Upsert({ team_id, input })
      ]) {
        const error = yield* Effect.flip(call)
        expect(error._tag).toBe("GatewayError")
        expect(error).toMatchObject({ code: "TRANSFORMATION_INVALID", data: { line: 2, message: "Unexpected token" } })
      }
      expect(yield* codeOf(create({ code: "busy" }))).toBe("QUEUE_UNAVAILABLE")
      expect(yield* codeOf(target.Update({ team_id, input: { code: "busy" } }))).toBe("QUEUE_UNAVAILABLE")
      expect(yield* sql`select * from transformations order by id`).toStrictEqual(before)
    })
  )

  it.effect("A transformation that a connection uses is not deleted", () =>
    Effect.gen(function* () {
      const created = yield* create()
      const connection = yield* createConnection({ rules: [{ type: "transform", transformation_id: created.id }] })
      const target = yield* owner(created.id)
      const error = yield* Effect.flip(target.Delete({ team_id }))
      expect(error).toMatchObject({ code: "RESOURCE_IN_USE" })
      expect((yield* target.Update({ team_id, input: {} })).connections_count).toBe(1)
      expect(JSON.stringify("data" in error ? error.data : null)).toContain(connection.id)
    })
  )

  it.effect("Code can run without being stored, with or without a sample request", () =>
    Effect.gen(function* () {
      const target = yield* owner(fresh())
      const run = yield* target.Run({ team_id, input: { code: "inline", timestamp: "2026-01-01T00:00:00Z" } })
      expect(run).toStrictEqual({
        transformation_id: null,
        runtime: "js-v1",
        stats: { duration_ms: 1.5, memory_bytes: 1024 },
        log_level: "warn",
        console: [
          JSON.stringify({
            connection_id: null,
            source_id: null,
            destination_id: null,
            request_id: null,
            timestamp: "2026-01-01T00:00:00.000Z",
            team_id
          }),
          team_id
        ],
        warnings: ["a warning"],
        request: {
          headers: { "x-env": "{}", "x-hash": codeHash("inline") },
          body: null,
          query: {},
          parsed_query: {},
          path: "/",
          method: "POST"
        },
        error: null,
        transformation_run_time: {
          started_at: "2023-11-14T22:13:20.000Z",
          finished_at: "2023-11-14T22:13:20.002Z",
          duration_ms: 1.5
        }
      })
      const sample = {
        headers: { "X-One": "1", "x-two": ["2", "3"] },
        body: [1, null],
        path: "/p",
        method: "PUT" as const
      }
      const whole = yield* target.Run({ team_id, input: { code: "inline", env: { K: "v" }, request: sample } })
      expect(whole.request).toStrictEqual({
        headers: { "x-one": "1", "x-two": ["2", "3"], "x-env": '{"K":"v"}', "x-hash": codeHash("inline") },
        body: [1, null],
        query: {},
        parsed_query: {},
        path: "/p",
        method: "PUT"
      })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select 1 from transformations where code = 'inline'`).toStrictEqual([])
    })
  )

  it.effect("A run returns the query in the form in which it was given", () =>
    Effect.gen(function* () {
      const target = yield* owner(fresh())
      const query = Effect.fnUntraced(function* (
        written: string | Readonly<Record<string, null | boolean | string | ReadonlyArray<number | string>>>
      ) {
        const { request } = yield* target.Run({ team_id, input: { code: "inline", request: { query: written } } })
        return [request?.query, request?.parsed_query]
      })
      const parsed = { a: ["1", "2"], b: "c d" }
      expect(yield* query("?a=1&a=2&b=c%20d")).toStrictEqual(["a=1&a=2&b=c%20d", parsed])
      expect(yield* query({ a: [1, "2"], b: "c d" })).toStrictEqual([parsed, parsed])
      const loose = { t: "true", n: "" }
      expect(yield* query({ t: true, n: null })).toStrictEqual([loose, loose])
      expect(yield* query("")).toStrictEqual(["", {}])
    })
  )

  it.effect("A stored transformation runs with its own variables or those of the call", () =>
    Effect.gen(function* () {
      const created = yield* create({ env: { A: "1" } })
      const target = yield* owner(created.id)
      const context = { connection_id: "web_1", source_id: "src_1", destination_id: "des_1", request_id: "req_1" }
      const input = { transformation_id: created.id, code: "throw", context: { ...context, team_id: otherTeam } }
      const run = yield* target.Run({ team_id, input })
      expect(run.transformation_id).toBe(created.id)
      expect(run.request?.headers).toMatchObject({ "x-env": '{"A":"1"}', "x-hash": codeHash("first") })
      expect(JSON.parse(run.console[0]!)).toMatchObject({ ...context, team_id })
      const other = yield* target.Run({ team_id, input: { ...input, env: { B: "2" } } })
      expect(other.request?.headers).toMatchObject({ "x-env": '{"B":"2"}' })
      expect(yield* codeOf(target.Run({ team_id: otherTeam, input }))).toBe("NOT_FOUND")
      yield* target.Delete({ team_id })
      expect(yield* codeOf(target.Run({ team_id, input }))).toBe("NOT_FOUND")
    })
  )

  it.effect("A failed run is an answer, but code that does not compile or a full sandbox is an error", () =>
    Effect.gen(function* () {
      const target = yield* owner(fresh())
      const failed = yield* target.Run({ team_id, input: { code: "throw" } })
      expect(failed).toMatchObject({
        log_level: "error",
        request: null,
        error: { code: "RUNTIME_ERROR", name: "TypeError", message: "no such thing", line: 3 }
      })
      expect(yield* codeOf(target.Run({ team_id, input: { code: "syntax" } }))).toBe("TRANSFORMATION_INVALID")
      expect(yield* codeOf(target.Run({ team_id, input: { code: "busy" } }))).toBe("QUEUE_UNAVAILABLE")
    })
  )

  it.effect("Code can be validated without running its handler", () =>
    Effect.gen(function* () {
      const target = yield* owner(fresh())
      const valid = yield* target.Validate({ team_id, input: { code: "inline", env: { K: "v" } } })
      expect(valid).toMatchObject({ valid: true, runtime: "js-v1", handlers: ["transform"], error: null })
      expect(valid.console[1]).toBe(team_id)
      expect(yield* target.Validate({ team_id, input: { code: "syntax" } })).toStrictEqual({
        valid: false,
        runtime: "js-v1",
        handlers: [],
        console: [],
        error: { code: "SYNTAX_ERROR", name: "SyntaxError", message: "Unexpected token", line: 2 }
      })
      expect(yield* codeOf(target.Validate({ team_id, input: { code: "busy" } }))).toBe("QUEUE_UNAVAILABLE")
    })
  )

  it.effect("A transformation with unreadable variables does not run", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const created = yield* create({ env: { A: "1" } })
      yield* sql`update transformations set env = 'v1.gone.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA' where id = ${created.id}`
      const target = yield* owner(created.id)
      const run = target.Run({ team_id, input: { transformation_id: created.id } })
      expect(yield* codeOf(run)).toBe("INTERNAL_ERROR")
    })
  )
})
