import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { keyOf } from "../src/Idempotency.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import { type Answer, call, teams } from "./ControlServer.ts"
import { siteAdmin, withAdmins } from "./SignedIn.ts"

const post = (path: string, key: string, body: unknown, more: { readonly key?: string } = {}) =>
  call("POST", path, { headers: { "idempotency-key": key }, body, ...more })

const source = (name: string) => ({ name, type: "WEBHOOK" })

layer(withAdmins, { excludeTestServices: true })("Call with an idempotency key", (it) => {
  it.effect("Call with an idempotency key is executed once and gets the same answer again", () =>
    Effect.gen(function* () {
      const first = yield* post("/sources", '"one"', source("one"))
      const again = yield* post("/v1/sources", "one", source("one"))
      expect([first.status, again.status]).toEqual([200, 200])
      expect(again.body).toEqual(first.body)
      expect([first.headers.get("idempotent-replayed"), again.headers.get("idempotent-replayed")]).toEqual([
        null,
        "true"
      ])
      expect(again.headers.get("content-type")).toBe(first.headers.get("content-type"))
      const { body } = yield* call("GET", "/sources?name=one")
      expect(body.count).toBe(1)
    })
  )

  it.effect("Repeated answer of an idempotent call contains its secret, which is stored encrypted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rotated = yield* post("/project-secrets/rotate", "rotation", { rotate: ["signing_secret"] })
      const again = yield* post("/project-secrets/rotate", "rotation", { rotate: ["signing_secret"] })
      expect(again.body).toEqual(rotated.body)
      const { value } = rotated.body.signing_secret
      expect(value).toMatch(/^gws_/)
      expect(JSON.stringify(yield* sql`select * from idempotency_keys`)).not.toContain(value)
    })
  )

  it.effect("Idempotency key is refused for another body and for another call", () =>
    Effect.gen(function* () {
      yield* post("/sources", "three", source("three"))
      for (const [path, body] of [
        ["/sources", source("four")],
        ["/sources?x=1", source("three")],
        ["/destinations", source("three")]
      ] as const) {
        const { body: answer, status } = yield* post(path, "three", body)
        expect([status, answer.code ?? answer, path]).toEqual(
          path.includes("?") ? [400, "VALIDATION_ERROR", path] : [422, "IDEMPOTENCY_KEY_REUSED", path]
        )
      }
      expect((yield* call("GET", "/sources?name=four")).body.count).toBe(0)
    })
  )

  it.effect("Idempotency keys of two teams are independent", () =>
    Effect.gen(function* () {
      const ours = yield* post("/sources", "five", source("five"))
      const theirs = yield* post("/sources", "five", source("five"), { key: teams.b.key })
      expect([ours.status, theirs.status]).toEqual([200, 200])
      expect(theirs.body.team_id).toBe(teams.b.id)
      expect(theirs.body.id).not.toBe(ours.body.id)
    })
  )

  it.effect("Idempotency key can be used again after a refused call", () =>
    Effect.gen(function* () {
      expect((yield* post("/sources", "six", { name: "six", typo: 1 })).status).toBe(400)
      expect((yield* post("/sources", "six", source("six"))).status).toBe(200)
      const taken = yield* post("/sources", "seven", source("six"))
      expect(taken.body.code).toBe("RESOURCE_ALREADY_EXISTS")
      expect((yield* post("/sources", "seven", source("seven"))).status).toBe(200)
    })
  )

  it.effect("Concurrent calls with one idempotency key run once, and others get 409 until the first ends", () =>
    Effect.gen(function* () {
      const sent = yield* Effect.all(
        Array.from({ length: 10 }, () => post("/sources", "eight", source("eight"))),
        { concurrency: "unbounded" }
      )
      const made = sent.filter(({ status }) => status === 200)
      expect(made.length).toBeGreaterThanOrEqual(1)
      expect(new Set(made.map(({ body }) => body.id)).size).toBe(1)
      for (const { body, status } of sent.filter(({ status }) => status !== 200)) {
        expect([status, body.code]).toEqual([409, "IDEMPOTENCY_KEY_IN_USE"])
      }
    })
  )

  it.effect("Call with an idempotency key returns the same resource after its process died before it answered", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const first = yield* post("/sources", "nine", source("nine"))
      yield* sql`update idempotency_keys set status = null, answer = null, held_until = now() - interval '1 second'
        where begun_at = (select max(begun_at) from idempotency_keys)`
      const again = yield* post("/sources", "nine", source("nine"))
      expect([again.status, again.body.id]).toEqual([200, first.body.id])
      expect(again.headers.get("idempotent-replayed")).toBe(null)
    })
  )

  it.effect(
    "Repeated create of a fixture, share, project key or team makes only one, with the secret of the last answer",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { token: session } = yield* siteAdmin
        const made = yield* call("POST", "/sources", { body: source("of-many") })
        const request_id = newId(prefixes.request, Date.now())
        yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
          events_count, ignored_count, ingested_at, created_at, updated_at)
        values (${request_id}, ${teams.a.id}, ${made.body.id}, 'accepted', false, 'POST', '/', '', '{}', 'x', 1, 0, 0, now(), now(), now())`
        const name = "once"
        for (const [path, body] of [
          ["/request-fixtures", { request_id, name }],
          [`/requests/${request_id}/share`, { title: name }],
          ["/project-api-keys", { name, scopes: ["control:read"] }],
          ["/teams", { name }]
        ] as const) {
          const sent = () => post(path, `once${path}`, body, { key: session })
          const first = yield* sent()
          expect([path, Math.floor(first.status / 100), first.body.message]).toEqual([path, 2, undefined])
          yield* sql`update idempotency_keys set status = null, answer = null, held_until = now() - interval '1 second'
          where begun_at = (select max(begun_at) from idempotency_keys)`
          const again = yield* sent()
          const idOf = ({ body }: Answer) => (body.data ?? body).id
          expect([path, again.status, idOf(again)]).toEqual([path, first.status, idOf(first)])
          expect(again.headers.get("idempotent-replayed")).toBe(null)
          if (path === "/project-api-keys") {
            const statusOf = ({ body }: Answer) =>
              Effect.map(call("GET", "/sources", { key: body.data.api_key }), ({ status }) => status)
            expect([yield* statusOf(again), yield* statusOf(first)]).toEqual([200, 401])
          }
          if (path.endsWith("/share")) {
            const statusOf = ({ body }: Answer) =>
              Effect.map(call("GET", `/shares/request/${body.token}`, { key: null }), ({ status }) => status)
            expect([yield* statusOf(again), yield* statusOf(first)]).toEqual([200, 404])
          }
        }
        const [counted] = yield* sql`select
        (select count(*)::int from request_fixtures where name = ${name}) as fixtures,
        (select count(*)::int from request_shares where title = ${name}) as shares,
        (select count(*)::int from project_api_keys where name = ${name}) as keys,
        (select count(*)::int from teams where name = ${name}) as teams`
        expect(counted).toEqual({ fixtures: 1, shares: 1, keys: 1, teams: 1 })
      })
  )

  it.effect("Idempotency key must have a valid form", () =>
    Effect.gen(function* () {
      for (const key of ['""', '"a', "a b", "a,b", "x".repeat(256), '"\\x"']) {
        const { body, status } = yield* post("/sources", key, source("ten"))
        expect([key, status, body.data?.fields?.[0]?.path]).toEqual([key, 400, "Idempotency-Key"])
      }
      expect([keyOf('"a b"'), keyOf('"a\\"b"'), keyOf("8e03978e-40d5"), keyOf('"8e03978e-40d5"')]).toEqual([
        "a b",
        'a"b',
        "8e03978e-40d5",
        "8e03978e-40d5"
      ])
    })
  )

  it.effect("Idempotency key is checked after the credential, and only for POST", () =>
    Effect.gen(function* () {
      const nobody = yield* call("POST", "/sources", { key: null, headers: { "idempotency-key": "a b" }, body: {} })
      expect(nobody.status).toBe(401)
      expect((yield* call("GET", "/sources", { headers: { "idempotency-key": "a b" } })).status).toBe(200)
    })
  )
})
