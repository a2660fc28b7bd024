import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { call as callBy, type CallOptions, layer as server, teams } from "./ControlServer.ts"

const unknown = newId(prefixes.filter, 1_700_000_000_000)
const conditions = { body: { type: "order.paid" } }
let made = 0
const named = (name: string) => `${name}-${++made}`

/** A session of somebody who is this to team A: keys may not write filters. */
const sessionOf = Effect.fnUntraced(function* (role: "owner" | "member") {
  const sql = yield* SqlClient.SqlClient
  const [user, token] = [named("usr"), `ses_${randomBytes(32).toString("hex")}`]
  yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
    values (${user}, 'https://issuer.test', ${user}, ${`${user}@example.com`}, true, ${user}, now(), now())`
  yield* sql`insert into memberships values (${teams.a.id}, ${user}, ${role}, now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${user}, ${teams.a.id}, now(), now() + interval '1 hour')`
  return token
})

/** A call by an owner. */
const call = Effect.fnUntraced(function* (method: string, path: string, options: CallOptions = {}) {
  return yield* callBy(method, path, { key: yield* sessionOf("owner"), ...options })
})

/** A connection with these rules. */
const connected = Effect.fnUntraced(function* (rules: ReadonlyArray<object>) {
  const name = named("linked")
  const source = (yield* call("POST", "/sources", { body: { name } })).body
  const destination = (yield* call("POST", "/destinations", { body: { name, url: "https://example.com/" } })).body
  const body = { name, source_id: source.id, destination_id: destination.id, rules }
  return yield* call("POST", "/connections", { body })
})

layer(server, { excludeTestServices: true })("Stored filters", (it) => {
  for (const prefix of ["", "/v1"]) {
    it.effect(`Filter can be created, read, changed and deleted under ${prefix}/filters`, () =>
      Effect.gen(function* () {
        const list = `${prefix}/filters`
        const name = named("life")
        const created = yield* call("POST", list, { body: { name, conditions } })
        expect(created).toMatchObject({
          status: 200,
          body: {
            id: expect.stringMatching(/^flt_/),
            team_id: teams.a.id,
            name,
            conditions,
            body: conditions.body,
            headers: null,
            query: null,
            path: null,
            connections_count: 0,
            sample_connection_id: null,
            workflow_steps_count: 0,
            connections: []
          }
        })
        const { id } = created.body
        const one = `${list}/${id}`
        expect(yield* call("GET", one)).toMatchObject({ status: 200, body: created.body })
        expect(yield* call("POST", list, { body: { name, conditions } })).toMatchObject({
          status: 409,
          body: { code: "RESOURCE_ALREADY_EXISTS", data: { id, resource_type: "filter" } }
        })
        for (const method of ["PATCH", "PUT"]) {
          expect(yield* call(method, one, { body: { path: `/${method}` } })).toMatchObject({
            status: 200,
            body: { id, name, conditions: { path: `/${method}` }, path: `/${method}`, body: null }
          })
        }
        expect(yield* call("PUT", list, { body: { name, conditions } })).toMatchObject({ status: 200, body: { id } })
        expect(yield* call("DELETE", one)).toStrictEqual(
          expect.objectContaining({ status: 200, body: { id, deleted: true, detached_connections: 0 } })
        )
        expect((yield* call("GET", one)).status).toBe(404)
        expect((yield* call("PATCH", one, { body: { path: "/" } })).status).toBe(404)
        expect((yield* call("DELETE", one)).status).toBe(404)
      })
    )
  }

  it.effect("Invalid filter is refused with a specific error code", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [object, string, object]> = [
        [{ name: "no name", conditions }, "INVALID_FILTER_NAME", { path: "name" }],
        [{ name: "a", conditions: {} }, "EMPTY_FILTER", { path: "conditions" }],
        [
          { name: "a", conditions: { body: { total: { $gt: {} } } } },
          "RULE_INVALID",
          { path: "body.total.$gt", operator: "$gt" }
        ]
      ]
      for (const [body, code, data] of wrong) {
        expect(yield* call("POST", "/filters", { body })).toMatchObject({ status: 400, body: { code, data } })
      }
    })
  )

  it.effect("Filters are listed by name without their connections, and narrowed by id and name", () =>
    Effect.gen(function* () {
      const names = ["b", "a", "c"].map((name) => named(`list-${name}`))
      const ids: Array<string> = []
      for (const name of names) ids.push((yield* call("POST", "/filters", { body: { name, conditions } })).body.id)
      yield* connected([{ type: "filter", filter_id: ids[0] }])
      const all = yield* call("GET", `/filters?id=${ids.join(",")}`)
      expect(all.body).toMatchObject({ pagination: { order_by: "name", dir: "asc" }, count: 3 })
      expect(all.body.models.map(({ name }: { name: string }) => name)).toEqual(names.toSorted())
      for (const model of all.body.models) expect(Object.keys(model)).not.toContain("connections")
      const linked = all.body.models.find(({ id }: { id: string }) => id === ids[0])
      expect(linked).toMatchObject({ connections_count: 1, sample_connection_id: expect.stringMatching(/^web_/) })
      const byName = yield* call("GET", `/filters?name=${names[2]}`)
      expect(byName.body.models).toMatchObject([{ id: ids[2] }])
      const last = yield* call("GET", `/filters?id=${ids.join(",")}&dir=desc&limit=1`)
      expect(last.body).toMatchObject({ count: 1, has_more: true, models: [{ name: names.toSorted().at(-1) }] })
    })
  )

  it.effect("Linked filter provides a rule's conditions, and a rule can be written back as it was read", () =>
    Effect.gen(function* () {
      const { id, name } = (yield* call("POST", "/filters", { body: { name: named("linked"), conditions } })).body
      const created = yield* connected([{ type: "filter", filter_id: id }])
      const [rule] = created.body.rules
      expect(rule).toMatchObject({
        type: "filter",
        filter_id: id,
        filter_snapshot: { name, hash: expect.stringMatching(/^sha256:/) },
        body: conditions.body
      })
      const path = `/connections/${created.body.id}`
      expect((yield* call("PATCH", path, { body: { rules: [rule] } })).body.rules).toMatchObject([{ filter_id: id }])
      expect(yield* call("PATCH", path, { body: { rules: [{ ...rule, body: { type: "x" } }] } })).toMatchObject({
        status: 400,
        body: { code: "RULE_INVALID", data: { path: "filter_id" } }
      })
      expect(yield* call("PATCH", path, { body: { rules: [{ type: "filter", filter_id: unknown }] } })).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND", data: { resource_type: "filter", id: unknown } }
      })
      const patched = yield* call("PATCH", `/filters/${id}`, { body: { conditions: { path: "/new" } } })
      expect(patched.body).toMatchObject({ connections_count: 1, connections: [{ id: created.body.id }] })
      const refreshed = (yield* call("GET", path)).body.rules
      expect(refreshed).toMatchObject([{ filter_id: id, path: "/new" }])
      expect(refreshed[0].body).toBeUndefined()
      expect((yield* call("DELETE", `/filters/${id}`)).body).toEqual({ id, deleted: true, detached_connections: 1 })
      const [left] = (yield* call("GET", path)).body.rules
      expect(left).toEqual({
        type: "filter",
        path: "/new",
        detached_from_filter: { id, name, detached_at: expect.any(String) }
      })
      expect((yield* call("PATCH", path, { body: { rules: [left] } })).body.rules).toEqual([left])
    })
  )

  it.effect("Signed-in owners write filters, and members and API keys read and test them", () =>
    Effect.gen(function* () {
      const { id } = (yield* call("POST", "/filters", { body: { name: named("roles"), conditions } })).body
      const writes: ReadonlyArray<readonly [string, string, object?]> = [
        ["POST", "/filters", { name: named("no"), conditions }],
        ["PUT", "/filters", { name: named("no"), conditions }],
        ["PATCH", `/filters/${id}`, { path: "/" }],
        ["PUT", `/filters/${id}`, { path: "/" }],
        ["DELETE", `/filters/${id}`]
      ]
      const reads: ReadonlyArray<readonly [string, string, object?]> = [
        ["GET", "/filters"],
        ["GET", `/filters/${id}`],
        ["POST", "/filters/test", { filter_id: id }]
      ]
      for (const [key, code] of [
        [yield* sessionOf("member"), "ROLE_REQUIRED"],
        [teams.a.key, "USER_SESSION_REQUIRED"]
      ] as const) {
        for (const [method, path, body] of writes) {
          expect(yield* callBy(method, path, { key, body }), `${method} ${path}`).toMatchObject({
            status: 403,
            body: { code }
          })
        }
        for (const [method, path, body] of reads) {
          expect((yield* callBy(method, path, { key, body })).status, `${method} ${path}`).toBe(200)
        }
      }
      expect((yield* callBy("GET", `/filters/${id}`, { key: teams.b.key })).status).toBe(404)
      expect((yield* callBy("POST", "/filters/test", { key: teams.b.key, body: { filter_id: id } })).status).toBe(404)
    })
  )

  it.effect("Filter test on a sample explains which conditions matched", () =>
    Effect.gen(function* () {
      const body = {
        conditions: { body: { total: { $gte: 100 } } },
        request: {
          headers: { "content-type": "application/json" },
          body: { total: "120.00" },
          query: {},
          path: "/orders"
        }
      }
      const answer = {
        matched: true,
        targets: { headers: null, body: true, query: null, path: null },
        explanation: [
          { target: "body", path: "total", operator: "$gte", expected: 100, actual: "120.00", matched: true }
        ]
      }
      expect(yield* call("POST", "/filters/test", { body })).toMatchObject({ status: 200, body: answer })
      const aliases = { filter: body.conditions, input: body.request }
      expect((yield* call("POST", "/filters/test", { body: aliases })).body).toEqual(answer)
      const { id } = (yield* call("POST", "/filters", { body: { name: named("tried"), conditions } })).body
      const stored = yield* call("POST", "/filters/test", { body: { filter_id: id, request: body.request } })
      expect(stored.body).toMatchObject({ matched: false, targets: { body: false } })
      const wrong: ReadonlyArray<readonly [unknown, number, string]> = [
        [{}, 400, "EMPTY_FILTER"],
        [{ conditions: { body: { $x: 1 } } }, 400, "RULE_INVALID"],
        [{ ...body, filter: body.conditions }, 400, "VALIDATION_ERROR"],
        [{ filter_id: unknown }, 404, "NOT_FOUND"],
        [{ conditions, request_id: newId(prefixes.request, Date.now()) }, 404, "NOT_FOUND"],
        [{ conditions, request: { body: "x".repeat(256 * 1024) } }, 413, "PAYLOAD_TOO_LARGE"]
      ]
      for (const [sent, status, code] of wrong) {
        expect(yield* call("POST", "/filters/test", { body: sent })).toMatchObject({ status, body: { code } })
      }
    })
  )

  it.effect("Filter can be tested on a received request while that request is stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = (yield* call("POST", "/sources", { body: { name: named("received") } })).body
      const insert = (body: string | null) =>
        Effect.gen(function* () {
          const id = newId(prefixes.request, Date.now())
          yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
              events_count, ignored_count, ingested_at, created_at, updated_at)
            values (${id}, ${teams.a.id}, ${source.id}, 'accepted', false, 'POST', '/orders', 'page=1',
              '{"content-type":"application/json"}', ${body === null ? null : Buffer.from(body)}, 2, 0, 0, now(), now(), now())`
          return id
        })
      const request_id = yield* insert('{"type":"order.paid"}')
      const asked = { conditions: { ...conditions, path: "/orders", query: { page: 1 } }, request_id }
      expect((yield* call("POST", "/filters/test", { body: asked })).body).toMatchObject({
        matched: true,
        targets: { headers: null, body: true, query: true, path: true }
      })
      const gone = yield* call("POST", "/filters/test", { body: { conditions, request_id: yield* insert(null) } })
      expect([gone.status, gone.body.code]).toEqual([409, "PAYLOAD_UNAVAILABLE"])
    })
  )
})
