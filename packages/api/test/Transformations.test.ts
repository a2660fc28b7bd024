import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { addQuarters } from "../../storage/test/quarterCounts.ts"
import { insertTransformed } from "../../storage/test/reads/Transformed.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import { codeHash } from "@tidegate/storage/control/Transformations"
import { call, client, layer as server, teams } from "./ControlServer.ts"

const unknown = newId(prefixes.transformation, 1_700_000_000_000)
const noBins = [0, 0, 0, 0, 0, 0]
let made = 0

/** A transformation, and a connection that uses it. */
const used = Effect.fnUntraced(function* () {
  const name = `used-${++made}`
  const transformation = (yield* call("POST", "/transformations", { body: { name, code: "used" } })).body
  const source = (yield* call("POST", "/sources", { body: { name } })).body
  const destination = (yield* call("POST", "/destinations", { body: { name, url: "https://example.com/" } })).body
  const connection = newId(prefixes.connection, Date.now())
  const sql = yield* SqlClient.SqlClient
  const rules = JSON.stringify([{ type: "transform", transformation_id: transformation.id }])
  yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, created_at, updated_at)
    values (${connection}, ${teams.a.id}, ${name}, ${source.id}, ${destination.id}, ${rules}, now(), now())`
  return {
    transformation,
    connection: { id: connection, source_id: source.id as string, destination_id: destination.id as string }
  }
})

layer(server, { excludeTestServices: true })("Transformation calls", (it) => {
  for (const prefix of ["", "/v1"]) {
    it.effect(`Transformation can be created, read, changed and deleted under ${prefix}/transformations`, () =>
      Effect.gen(function* () {
        const list = `${prefix}/transformations`
        const body = { name: "life", code: "one", env: { A: "1" } }
        const created = yield* call("POST", list, { body })
        expect(created).toMatchObject({
          status: 200,
          body: {
            ...body,
            id: expect.stringMatching(/^trs_/),
            team_id: teams.a.id,
            runtime: "js-v1",
            code_hash: codeHash("one"),
            deleted_at: null,
            connections_count: 0,
            executions_24h_successful_bins: noBins
          }
        })
        const { id } = created.body
        const one = `${list}/${id}`
        expect(yield* call("GET", one)).toMatchObject({ status: 200, body: created.body })
        expect(yield* call("POST", list, { body })).toMatchObject({
          status: 409,
          body: { code: "RESOURCE_ALREADY_EXISTS", data: { id, resource_type: "transformation" } }
        })
        for (const method of ["PATCH", "PUT"]) {
          expect(yield* call(method, one, { body: { code: method } })).toMatchObject({
            status: 200,
            body: { id, code: method, env: { A: "1" } }
          })
        }
        const replaced = yield* call("PUT", list, { body: { name: "life", code: "three" } })
        expect(replaced).toMatchObject({ status: 200, body: { id, code: "three", env: {} } })
        expect(yield* call("PUT", list, { body: { name: "life" } })).toMatchObject({
          status: 400,
          body: { code: "VALIDATION_ERROR", data: { fields: [{ path: "code" }] } }
        })
        expect((yield* call("GET", one)).body.code).toBe("three")
        expect(yield* call("DELETE", one)).toMatchObject({ status: 200, body: { id, deleted: true } })
        expect((yield* call("GET", one)).status).toBe(404)
        expect((yield* call("DELETE", one)).status).toBe(404)
        expect((yield* call("GET", `${one}/executions`)).status).toBe(404)
      })
    )
  }

  it.effect("Concurrent upserts of one transformation name all succeed and create one", () =>
    Effect.gen(function* () {
      const answers = yield* Effect.all(
        Array.from({ length: 6 }, () => call("PUT", "/transformations", { body: { name: "contended", code: "x" } })),
        { concurrency: 6 }
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    })
  )

  it.effect("Transformation in use cannot be deleted, and the answer names the connection", () =>
    Effect.gen(function* () {
      const { connection, transformation } = yield* used()
      expect(yield* call("DELETE", `/transformations/${transformation.id}`)).toMatchObject({
        status: 409,
        body: { code: "RESOURCE_IN_USE", data: { connections: [connection.id] } }
      })
      yield* call("DELETE", `/connections/${connection.id}`)
      expect((yield* call("DELETE", `/transformations/${transformation.id}`)).status).toBe(200)
    })
  )

  it.effect("Transformations are listed by id, name, order and limit, and counted on request only", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { transformation: first } = yield* used()
      const { transformation: second } = yield* used()
      yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count) values
        (${first.id}, 'execution_successful', date_trunc('minute', now()) - interval '1 hour', 1, ${teams.a.id}, 5),
        (${first.id}, 'execution_failed', date_trunc('minute', now()) - interval '9 hours', 1, ${teams.a.id}, 2)`
      yield* addQuarters
      const list = `/transformations?id=${first.id},${second.id}`
      const plain = yield* call("GET", list)
      expect(plain).toMatchObject({
        status: 200,
        body: { pagination: { order_by: "created_at", dir: "desc", limit: 100 }, count: 2 }
      })
      expect(plain.body.models.map(({ id }: { id: string }) => id)).toEqual([second.id, first.id])
      for (const model of plain.body.models) {
        expect(model).toMatchObject({
          connections_count: 0,
          executions_24h_count: 0,
          executions_24h_failed_bins: noBins
        })
      }
      for (const flag of ["include_counts=true", "include_metrics=true"]) {
        const counted = yield* call("GET", `${list}&${flag}&order_by=name&dir=ASC&limit=1`)
        expect(counted.body.pagination).toEqual({ order_by: "name", dir: "asc", limit: 1 })
        expect(counted.body.models).toMatchObject([
          {
            id: first.id,
            connections_count: 1,
            executions_24h_count: 7,
            executions_24h_successful_count: 5,
            executions_24h_failed_count: 2,
            executions_24h_successful_bins: [0, 0, 0, 0, 0, 5],
            executions_24h_failed_bins: [0, 0, 0, 2, 0, 0]
          }
        ])
      }
      expect((yield* call("GET", `${list}&include_counts=false&include_metrics=true`)).status).toBe(400)
      expect((yield* call("GET", `/transformations?name=${first.name}`)).body.count).toBe(1)
      expect((yield* call("GET", "/transformations?limit=1000")).body.pagination.limit).toBe(255)
    })
  )

  for (const method of ["POST", "PUT"]) {
    it.effect(`Call ${method} /transformations/run runs code on a sample`, () =>
      Effect.gen(function* () {
        const request = { headers: { "X-A": "1" }, body: { a: [1] }, query: { q: "1" }, path: "/p", method: "PATCH" }
        const run = (body: object) => call(method, "/v1/transformations/run", { body })
        const inline = yield* run({ code: "inline", env: { K: "v" }, request, timestamp: "2026-01-01T00:00:00Z" })
        expect(inline).toMatchObject({
          status: 200,
          body: {
            transformation_id: null,
            runtime: "js-v1",
            stats: { duration_ms: 1.5, memory_bytes: 1024 },
            log_level: "warn",
            console: [expect.stringContaining("2026-01-01T00:00:00.000Z"), teams.a.id],
            warnings: ["a warning"],
            request: { ...request, headers: { "x-a": "1", "x-env": '{"K":"v"}' } },
            error: null,
            transformation_run_time: {
              started_at: expect.any(String),
              finished_at: expect.any(String),
              duration_ms: 1.5
            }
          }
        })
        const { body: stored } = yield* call("PUT", "/transformations", { body: { name: "run", code: "stored" } })
        const saved = yield* run({ transformation_id: stored.id, request: { query: "q=1" } })
        expect(saved).toMatchObject({
          status: 200,
          body: { transformation_id: stored.id, request: { query: "q=1", headers: { "x-hash": codeHash("stored") } } }
        })
        expect(yield* run({ code: "throw" })).toMatchObject({
          status: 200,
          body: { log_level: "error", request: null, error: { name: "TypeError", message: "no such thing", line: 3 } }
        })
        for (const [body, status, code] of [
          [{}, 400, "VALIDATION_ERROR"],
          [{ code: "syntax" }, 400, "TRANSFORMATION_INVALID"],
          [{ code: "busy" }, 503, "QUEUE_UNAVAILABLE"],
          [{ transformation_id: unknown }, 404, "NOT_FOUND"],
          [{ transformation_id: "run" }, 404, "NOT_FOUND"],
          [{ transformation_id: "" }, 404, "NOT_FOUND"],
          [{ transformation_id: 5 }, 400, "VALIDATION_ERROR"]
        ] as const) {
          expect(yield* run(body)).toMatchObject({ status, body: { code, status } })
        }
      })
    )
  }

  it.effect("Validation of code reports its faults without an input", () =>
    Effect.gen(function* () {
      const validate = (body: object) => call("PUT", "/v1/transformations/validate", { body })
      const sound = { valid: true, runtime: "js-v1", handlers: ["transform"], error: null }
      expect(yield* validate({ code: "inline", env: { K: "v" } })).toMatchObject({ status: 200, body: sound })
      expect(yield* validate({ code: "syntax" })).toMatchObject({
        status: 200,
        body: { valid: false, handlers: [], console: [], error: { code: "SYNTAX_ERROR", line: 2 } }
      })
      for (const [body, status, code] of [
        [{}, 400, "VALIDATION_ERROR"],
        [{ code: "" }, 400, "VALIDATION_ERROR"],
        [{ code: "inline", env: { "a b": "c" } }, 400, "VALIDATION_ERROR"],
        [{ code: "busy" }, 503, "QUEUE_UNAVAILABLE"]
      ] as const) {
        expect(yield* validate(body)).toMatchObject({ status, body: { code, status } })
      }
      expect((yield* call("GET", "/transformations?name=inline")).body.count).toBe(0)
    })
  )

  it.effect("Capabilities list what transformation code may use and its limits", () =>
    Effect.gen(function* () {
      const { body, status } = yield* call("GET", "/v1/transformations/capabilities")
      expect(status).toBe(200)
      expect(body).toMatchObject({ runtime: "js-v1", handlers: ["transform"], isolations: ["sealed", "fresh"] })
      expect(body.globals).toContain("crypto.hmac")
      // As they stand in docs/transformations.md.
      expect(body.limits).toStrictEqual({
        time_ms: 1_000,
        memory_bytes: 64 * 1024 * 1024,
        code_bytes: 1024 * 1024,
        variables: 100,
        variables_bytes: 64 * 1024,
        output_bytes: 10 * 1024 * 1024,
        body_values: 100_000,
        body_depth: 512,
        headers: 500,
        headers_bytes: 64 * 1024,
        header_name_bytes: 256,
        header_value_bytes: 32 * 1024,
        path_bytes: 2_048,
        query_bytes: 16 * 1024,
        query_values: 1_000,
        log_lines: 100,
        log_line_bytes: 4_096
      })
    })
  )

  it.effect("Code of the maximum size is accepted, also when JSON escapes most of it", () =>
    Effect.gen(function* () {
      const code = `//${"\n\t".repeat(512 * 1024 - 1)}`
      const created = yield* call("POST", "/transformations", { body: { name: "largest", code } })
      expect([created.status, created.body.code_hash]).toEqual([200, codeHash(code)])
      const larger = yield* call("PATCH", `/transformations/${created.body.id}`, { body: { code: `${code}x` } })
      expect(larger).toMatchObject({ status: 400, body: { code: "VALIDATION_ERROR" } })
      // What stands in a text is no value, however many commas there are.
      const commas = yield* call("PATCH", `/transformations/${created.body.id}`, {
        body: { code: `//${",[{".repeat(300_000)}` }
      })
      expect(commas.status).toBe(200)
      yield* call("PATCH", `/transformations/${created.body.id}`, { body: { code } })
      const largest = { name: "largest", code: "x", more: "x".repeat(4 * 1024 * 1024) }
      expect(yield* call("PUT", "/transformations", { body: largest })).toMatchObject({
        status: 413,
        body: { code: "PAYLOAD_TOO_LARGE" }
      })
      expect((yield* call("GET", `/transformations/${created.body.id}`)).body.code).toBe(code)
    })
  )

  it.effect("Executions of a transformation are listed in pages and read one by one", () =>
    Effect.gen(function* () {
      const { connection, transformation } = yield* used()
      const where = { team: teams.a.id, connection, transformationId: transformation.id as string }
      const ids: Array<string> = []
      for (let i = 0; i < 7; i++) {
        const logLevel = i % 2 === 0 ? "info" : "warn"
        const logs = [{ type: "log", message: `run ${i}` }]
        const at = Date.now() - 60_000 * (7 - i)
        ids.unshift(
          (yield* insertTransformed({ ...where, at, logs, logLevel, made: { body: `{"i":${i}}` } })).execution
        )
      }
      const list = `/transformations/${transformation.id}/executions`
      const first = yield* call("GET", `${list}?limit=3`)
      expect(first).toMatchObject({
        status: 200,
        body: { total: 3, total_exact: false, count: 3, limit: 3, pagination: { order_by: "created_at", dir: "desc" } }
      })
      expect(first.body.models[0]).toMatchObject({
        id: ids[0],
        team_id: teams.a.id,
        transformation_id: transformation.id,
        webhook_id: connection.id,
        connection_id: connection.id,
        logs: [{ type: "log", message: "run 6" }],
        log_level: "info",
        stats: { duration_ms: 1.5, memory_bytes: 4096 },
        error_code: null
      })
      expect(first.body.models[0]).not.toHaveProperty("original_event_data")
      const second = yield* call("GET", `${list}?limit=10&cursor=${first.body.next_cursor}`)
      expect(second.body).toMatchObject({ total: 7, total_exact: true, next_cursor: null })
      const seen = [...first.body.models, ...second.body.models].map(({ id }: { id: string }) => id)
      expect(seen).toEqual(ids)
      const warned = yield* call("GET", `${list}?log_level=WARN,fatal&from=now-1h`)
      expect(warned.body.models.map(({ id }: { id: string }) => id)).toEqual(ids.filter((_, i) => i % 2 === 1))
      expect((yield* call("GET", `${list}?to=now-1h`)).body.count).toBe(0)
      expect(yield* call("GET", `${list}?log_level=warn&cursor=${first.body.next_cursor}`)).toMatchObject({
        status: 400,
        body: { code: "INVALID_CURSOR" }
      })

      const { request_id } = first.body.models[0]
      for (const query of ["", `?request_id=${request_id}`, "?request_id=req_stale", "?request_id="]) {
        expect(yield* call("GET", `${list}/${ids[0]}${query}`)).toMatchObject({
          status: 200,
          body: {
            ...first.body.models[0],
            original_event_data: { method: "POST", path: "/in", parsed_query: { q: "1" }, body: { a: 1 } },
            transformed_event_data: { method: "PUT", path: "/out", parsed_query: { q: "2" }, body: { i: 6 } }
          }
        })
      }
      const trace = (yield* call("GET", `/requests/${request_id}/trace`)).body
      expect(trace.transformations).toEqual([(yield* call("GET", `${list}/${ids[0]}`)).body])
      expect(trace.timeline.map(({ kind }: { kind: string }) => kind)).toEqual(["request", "transformation", "event"])
      const other = (yield* used()).transformation.id
      for (const path of [`${list}/txe_unknown`, `/transformations/${other}/executions/${ids[0]}`]) {
        expect(yield* call("GET", path)).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } })
      }
    })
  )

  it.effect("Transformation calls find nothing of another team", () =>
    Effect.gen(function* () {
      const { connection, transformation } = yield* used()
      const where = { team: teams.a.id, connection, transformationId: transformation.id as string }
      const { execution } = yield* insertTransformed(where)
      const one = `/transformations/${transformation.id}`
      const key = { key: teams.b.key }
      for (const [method, path, body] of [
        ["GET", one],
        ["PATCH", one, { code: "stolen" }],
        ["PUT", one, { code: "stolen" }],
        ["DELETE", one],
        ["GET", `${one}/executions`],
        ["GET", `${one}/executions/${execution}`],
        ["POST", "/transformations/run", { transformation_id: transformation.id }]
      ] as const) {
        const answer = yield* call(method, path, body === undefined ? key : { ...key, body })
        expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 404, "NOT_FOUND"])
      }
      expect((yield* call("GET", `/transformations?id=${transformation.id}`, key)).body.count).toBe(0)
      expect(
        (yield* call("PUT", "/transformations", { ...key, body: { name: transformation.name, code: "own" } })).body.id
      ).not.toBe(transformation.id)
      expect((yield* call("GET", one)).body.code).toBe("used")
    })
  )

  it.effect("Transformation call with a wrong method gets the allowed methods", () =>
    Effect.gen(function* () {
      for (const [method, path, allow] of [
        ["DELETE", "/v1/transformations", "GET, POST, PUT, HEAD, OPTIONS"],
        ["POST", `/v1/transformations/${unknown}`, "GET, PATCH, PUT, DELETE, HEAD, OPTIONS"],
        ["POST", `/v1/transformations/${unknown}/executions`, "GET, HEAD, OPTIONS"],
        ["DELETE", `/v1/transformations/${unknown}/executions/txe_1`, "GET, HEAD, OPTIONS"]
      ] as const) {
        const answer = yield* call(method, path)
        expect([path, answer.status, answer.headers.get("allow")]).toEqual([path, 405, allow])
      }
      expect(yield* call("GET", "/v1/transformations/run")).toMatchObject({ status: 404, body: { code: "NOT_FOUND" } })
    })
  )

  it.effect("Derived Effect client runs, creates and lists transformations", () =>
    Effect.gen(function* () {
      const api = yield* client
      const created = yield* api.transformations.create({ query: {}, payload: { name: "client", code: "x" } })
      const run = yield* api.transformations.run({ query: {}, payload: { transformation_id: created.id } })
      expect(run.request?.path).toBe("/")
      const { models } = yield* api.transformations.list({ query: { name: "client", include_counts: true } })
      expect(models).toEqual([created])
      const executions = yield* api.transformations.executions({
        params: { id: created.id },
        query: { log_level: ["warn"] }
      })
      expect(executions.models).toEqual([])
      const wrong = yield* Effect.flip(
        api.transformations.create({ query: {}, payload: { name: "w", code: "syntax" } })
      )
      expect(wrong).toMatchObject({ _tag: "GatewayError", code: "TRANSFORMATION_INVALID", data: { line: 2 } })
    })
  )
})
