import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Api } from "../src/contract/Api.ts"
import { call, client, layer as server, teams } from "./ControlServer.ts"

const url = "https://example.com/hooks"
const http = (name: string) => ({ name, config: { url } })

/** A source, a destination and a connection between them. */
const chain = Effect.fnUntraced(function* (name: string) {
  const source = (yield* call("POST", "/sources", { body: { name } })).body
  const destination = (yield* call("POST", "/destinations", { body: http(name) })).body
  const connection = yield* call("POST", "/connections", {
    body: { name, source_id: source.id, destination_id: destination.id }
  })
  expect(connection).toMatchObject({
    status: 200,
    body: { name, source: { id: source.id }, destination: { id: destination.id }, rules: [], paused_at: null }
  })
  return { source, destination, connection: connection.body }
})

layer(server, { excludeTestServices: true })("Resource commands", (it) => {
  it.effect("Source created over HTTP is stored as a row and can be read back", () =>
    Effect.gen(function* () {
      const created = yield* call("POST", "/v1/sources", { body: { name: "orders" } })
      expect(created).toMatchObject({ status: 200, body: { name: "orders", type: "WEBHOOK", status: "enabled" } })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select team_id, name from sources where id = ${created.body.id}`).toEqual([
        { team_id: "tm_a", name: "orders" }
      ])
      expect(yield* call("GET", `/sources/${created.body.id}`)).toMatchObject({ status: 200, body: created.body })
    })
  )

  for (const [kind, body] of [
    ["sources", { name: "life", description: "one" }],
    ["destinations", { ...http("life"), description: "one" }]
  ] as const) {
    for (const prefix of ["", "/v1"]) {
      it.effect(`Resource can be created, changed, disabled and deleted under ${prefix}/${kind}`, () =>
        Effect.gen(function* () {
          const list = `${prefix}/${kind}`
          const created = yield* call("PUT", list, { body })
          expect(created).toMatchObject({ status: 200, body: { ...body, disabled_at: null } })
          const one = `${list}/${created.body.id}`
          const again = yield* call("PUT", list, { body: { ...body, description: "two" } })
          expect(again).toMatchObject({ status: 200, body: { id: created.body.id, description: "two" } })
          const strange = { description: null, unknown: { deep: true } }
          expect((yield* call("PATCH", one, { body: strange })).body).toMatchObject({
            code: "VALIDATION_ERROR",
            data: { fields: [{ path: "unknown" }] }
          })
          const patched = yield* call("PATCH", one, { body: strange, headers: { prefer: "handling=lenient" } })
          expect(patched).toMatchObject({ status: 200, body: { id: created.body.id, description: null } })
          expect(yield* call("PUT", one, { body: { ...body, description: "three" } })).toMatchObject({
            status: 200,
            body: { description: "three" }
          })
          for (const method of ["PUT", "POST"]) {
            const disabled = yield* call(method, `${one}/disable`)
            expect(disabled).toMatchObject({ status: 200, body: { disabled_at: expect.any(String) } })
            expect((yield* call("GET", `${list}?include_disabled=false&name=life`)).body.count).toBe(0)
            expect((yield* call("GET", `${list}?name=life`)).body.count).toBe(1)
            const enabled = yield* call(method, `${one}/enable`)
            expect(enabled).toMatchObject({ status: 200, body: { disabled_at: null } })
          }
          expect((yield* call("GET", one)).body.description).toBe("three")
          expect(yield* call("DELETE", one)).toMatchObject({
            status: 200,
            body: { id: created.body.id, deleted: true }
          })
          expect(yield* call("GET", one)).toMatchObject({ status: 404 })
          expect(yield* call("DELETE", one)).toMatchObject({ status: 404 })
        })
      )
    }
  }

  it.effect("Replaced destination has the given config alone, and a patched destination keeps the rest", () =>
    Effect.gen(function* () {
      const { body } = yield* call("POST", "/destinations", {
        body: { name: "replaced", config: { url, rate_limit: 5, rate_limit_period: "minute" } }
      })
      const patched = yield* call("PATCH", `/destinations/${body.id}`, { body: { config: { http_method: "PUT" } } })
      expect(patched.body.config).toMatchObject({ url, rate_limit: 5, http_method: "PUT" })
      const replaced = yield* call("PUT", `/destinations/${body.id}`, { body: http("replaced") })
      expect(replaced.body.config).toMatchObject({ url, rate_limit: null, http_method: null })
    })
  )

  for (const prefix of ["", "/v1"]) {
    it.effect(`Connection can be paused, disabled, changed, upserted and deleted under ${prefix}/connections`, () =>
      Effect.gen(function* () {
        const name = `chain${prefix.length}`
        const { connection, destination, source } = yield* chain(name)
        const one = `${prefix}/connections/${connection.id}`
        expect((yield* call("GET", one)).body).toEqual(connection)
        for (const method of ["PUT", "POST"]) {
          const paused = yield* call(method, `${one}/pause`)
          expect(paused).toMatchObject({ status: 200, body: { paused_at: expect.any(String) } })
          expect((yield* call("GET", `${prefix}/connections?paused=true&name=${name}`)).body.count).toBe(1)
          expect(yield* call(method, `${one}/unpause`)).toMatchObject({ status: 200, body: { paused_at: null } })
          const disabled = yield* call(method, `${one}/disable`)
          expect(disabled).toMatchObject({ status: 200, body: { disabled_at: expect.any(String) } })
          expect(yield* call(method, `${one}/enable`)).toMatchObject({ status: 200, body: { disabled_at: null } })
        }
        const rules = [{ type: "delay", delay: 1000 }]
        expect((yield* call("PATCH", one, { body: { rules } })).body.rules).toEqual(rules)
        expect((yield* call("PUT", one, { body: { description: "d" } })).body).toMatchObject({
          rules,
          description: "d"
        })
        const bySource = { name, source: { id: source.id }, destination_id: destination.id, description: "by source" }
        const upserted = yield* call("PUT", `${prefix}/connections`, { body: bySource })
        expect(upserted.body).toMatchObject({ id: connection.id, description: "by source" })
        const byId = yield* call("PUT", `${prefix}/connections`, { body: { id: connection.id, description: "by id" } })
        expect(byId.body).toMatchObject({ id: connection.id, name, description: "by id" })
        const unknown = newId(prefixes.connection, Date.now())
        expect(yield* call("PUT", `${prefix}/connections`, { body: { ...bySource, id: unknown } })).toMatchObject({
          status: 404,
          body: { data: { resource_type: "connection" } }
        })
        expect((yield* call("GET", `${one}/latest-input`)).body).toEqual({
          connection_id: connection.id,
          latest_input: null
        })
        const gone = yield* call("DELETE", one)
        expect(gone).toMatchObject({ status: 200, body: { id: connection.id, deleted: true } })
      })
    )
  }

  it.effect("Concurrent upserts of one name all succeed and create one resource", () =>
    Effect.gen(function* () {
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, () => call("PUT", "/sources", { body: { name: "contended" } })),
        { concurrency: 8 }
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
    })
  )

  it.effect("Retry of an event creates a new event", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { connection, destination, source } = yield* chain("retried")
      // What a request became by routing has its time.
      const at = Date.now()
      const request = newId(prefixes.request, at)
      const event = newId(prefixes.event, at)
      yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body,
          body_size, events_count, ignored_count, ingested_at, created_at, updated_at)
        values (${request}, ${teams.a.id}, ${source.id}, 'accepted', false, 'POST', '/', '', '{}', 'x', 1, 1, 0, now(), now(), now())`
      yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed,
          trigger, ingested_at, created_at, updated_at)
        values (${event}, ${teams.a.id}, ${request}, ${connection.id}, ${source.id}, ${destination.id}, 'FAILED', true,
          'INITIAL', now(), now(), now())`
      const answer = yield* call("POST", `/v1/events/${event}/retry`)
      expect(answer).toMatchObject({
        status: 202,
        body: { ok: true, queued: true, transport: "queue", event_id: event, retried_at: expect.any(String) }
      })
      const made = (yield* call("GET", `/events/${answer.body.replay_event_id}`)).body
      expect(made).toMatchObject({
        request_id: request,
        status: "QUEUED",
        is_retry: true,
        retry_kind: "single",
        retry_parent_event_id: event,
        data: { request: { body: "x", encoding: "text" }, response: null }
      })
      expect((yield* call("GET", `/requests/${request}/events`)).body.models).toHaveLength(2)
      expect((yield* call("GET", `/events?q=${request}`)).body.count).toBe(2)
      yield* call("POST", `/connections/${connection.id}/pause`)
      expect(yield* call("POST", `/events/${event}/retry`)).toMatchObject({
        status: 409,
        body: { code: "CONNECTION_PAUSED" }
      })
    })
  )

  it.effect("Derived Effect client creates, reads, lists, changes and deletes a source", () =>
    Effect.gen(function* () {
      const api = yield* client
      const created = yield* api.sources.create({ query: {}, payload: { name: "client" } })
      const path = { params: { id: created.id }, query: {} }
      expect(yield* api.sources.retrieve(path)).toEqual(created)
      expect((yield* api.sources.disable(path)).status).toBe("disabled")
      expect((yield* api.sources.list({ query: { name: "client", include_disabled: false } })).models).toEqual([])
      expect((yield* api.sources.list({ query: { id: [created.id], limit: 1 } })).count).toBe(1)
      expect(yield* api.sources.delete(path)).toEqual({ id: created.id, deleted: true })
      const gone = yield* Effect.flip(api.sources.retrieve(path))
      expect(gone).toMatchObject({ _tag: "GatewayError", code: "NOT_FOUND", data: { resource_type: "source" } })
      const wrong = yield* Effect.flip(
        api.destinations.create({
          query: {},
          // A mask that stands for nothing: the client has the schemas, and refuses by itself what they refuse.
          payload: {
            name: "wrong",
            type: "MOCK_API",
            config: { auth_type: "CUSTOM_HEADER", auth: { header_name: "x-token", value: "****oken" } }
          }
        })
      )
      expect(wrong).toMatchObject({ _tag: "GatewayError", code: "VALIDATION_ERROR" })
      expect((yield* api.requests.list({ query: { status: "accepted", include: ["data"] } })).partial).toBe(false)
      expect((yield* api.events.count({ query: { status: ["SUCCESSFUL"] } })).total).toBe(0)
      expect((yield* api.attempts.list({ query: { dir: "asc" } })).models).toEqual([])
    })
  )

  it.effect("OpenAPI document and its page are served with and without /v1", () =>
    Effect.gen(function* () {
      for (const prefix of ["", "/v1"]) {
        const { body, status } = yield* call("GET", `${prefix}/openapi.json`, { key: null })
        expect([status, body.openapi]).toEqual([200, "3.1.0"])
        const endpoints = Object.values(Api.groups).flatMap((group) => Object.values(group.endpoints))
        expect(Object.keys(body.paths)).toEqual(
          expect.arrayContaining(endpoints.map(({ path }) => path.replaceAll(/:(\w+)/g, "{$1}")))
        )
        expect(body.components.securitySchemes.bearer).toMatchObject({ type: "http", scheme: "bearer" })
        expect(body.paths["/sources"].post).toMatchObject({ tags: ["Sources"], summary: "Create a source" })
        expect(Object.keys(body.paths["/sources"].post.responses)).toEqual([
          "200",
          "400",
          "401",
          "403",
          "409",
          "413",
          "415",
          "422",
          "429",
          "500",
          "503"
        ])
        const page = yield* call("GET", `${prefix}/docs`, { key: null })
        expect(page.status).toBe(200)
        expect(page.body).toContain("Tidegate control API")
        const script = /<script src="(docs\/scalar-\w+\.js)"/.exec(page.body)?.[1]
        expect((yield* call("GET", `${prefix}/${script}`, { key: null })).status).toBe(200)
      }
    })
  )
})
