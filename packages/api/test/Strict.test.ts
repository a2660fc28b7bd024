import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Api } from "../src/contract/Api.ts"
import { SignInSettings } from "../src/SignInSettings.ts"
import { type Answer, call, layer as server } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"

interface Operation {
  readonly operationId: string
  readonly security?: ReadonlyArray<unknown>
  readonly requestBody?: { readonly content: Record<string, { readonly example?: object }> }
  readonly [extension: `x-${string}`]: unknown
}

const document = OpenApi.fromApi(Api) as unknown as {
  readonly paths: Record<string, Record<string, Operation>>
}
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) =>
    "operationId" in operation && !path.startsWith("/e/")
      ? [{ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, "none"), operation }]
      : []
  )
)

const fieldsOf = ({ body, status }: Answer): ReadonlyArray<string> => [
  String(status),
  ...(body?.data?.fields ?? []).map(({ message, path }: Record<string, string>) => `${path} ${message}`)
]

const lenient = { prefer: "respond-async, handling=lenient" }
const http = { type: "HTTP", config: { url: "https://api.example.com/hooks" } }

const root = "root@example.com"

const world = server.pipe(
  Layer.provide(
    Layer.effect(
      SignInSettings,
      Effect.map(SignInSettings, (settings) => ({ ...settings, siteAdmins: new Set([root]) }))
    )
  )
)

/** Somebody who may call whatever there is. */
const siteAdmin = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { token, user } = yield* somebody
  yield* sql`update users set email = ${root}, email_verified = true where id = ${user}`
  return { token }
})

layer(world, { excludeTestServices: true })("members and parameters that nobody knows", (it) => {
  it.effect("a parameter that nobody knows is 400 at every operation of the contract", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      expect(operations.length).toBeGreaterThan(100)
      for (const { method, operation, path } of operations) {
        if (operation["x-any-parameters"] === true) continue
        const answer = yield* call(method, `${path}?retried_=false`, { key: token })
        expect([operation.operationId, answer.status, answer.body?.code, answer.body?.data?.fields?.[0]?.path]).toEqual(
          [operation.operationId, 400, "VALIDATION_ERROR", "retried_"]
        )
      }
    })
  )

  it.effect("a member that nobody knows is 400 in every body of the contract", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      const tried = new Set<string>()
      for (const { method, operation, path } of operations) {
        const media = operation.requestBody?.content["application/json"]
        if (media === undefined) continue
        const body = { ...media.example, zzz_of_nobody: 1 }
        const answer = yield* call(method, path, { body, key: token })
        // What is not there is told of before what is written of it.
        if (answer.status === 404 || answer.body.code === "LOGIN_DISABLED") continue
        const told = JSON.stringify(answer.body?.data)
        expect([operation.operationId, answer.status]).toEqual([operation.operationId, 400])
        expect(told, operation.operationId).toContain("zzz_of_nobody")
        tried.add(operation.operationId)
      }
      expect(tried.size).toBeGreaterThan(30)
    })
  )

  it.effect("the nearest name is told, with the place", () =>
    Effect.gen(function* () {
      const told = (method: string, path: string, body?: unknown) =>
        Effect.map(call(method, path, body === undefined ? {} : { body }), fieldsOf)
      expect(yield* told("GET", "/events?stauts=FAILED&sourceid=x")).toEqual([
        "400",
        "stauts is not a parameter of this call; did you mean status?",
        "sourceid is not a parameter of this call; did you mean source_id?"
      ])
      expect(yield* told("POST", "/events/bulk_operations", { stauts: "FAILED" })).toEqual([
        "400",
        "stauts is not known here; did you mean status?"
      ])
      expect(
        yield* told("POST", "/sources", { name: "a", config: { atuh: { username: "u", password: "p" } } })
      ).toEqual(["400", "config.atuh is not known here; did you mean auth?"])
      expect(yield* told("POST", "/sources", { name: "a", type: "GITHUBB" })).toEqual([
        "400",
        "type is no type of source; did you mean GITHUB?"
      ])
      expect(yield* told("POST", "/sources", { name: "a", type: "OF_NOBODY" })).toEqual([
        "400",
        "type is a type that nobody knows here: say in config.auth_type how it verifies, null for not at all"
      ])
      expect(
        yield* told("POST", "/destinations", {
          name: "a",
          type: "HTTP",
          config: { ulr: "https://example.com/", url: 1 }
        })
      ).toEqual(["400", "config.url must be a string", "config.ulr is not known here; did you mean url?"])
      expect(yield* told("POST", "/filters/test", { filter: { body: { a: 1 } }, input: { bdoy: { a: 1 } } })).toEqual([
        "400",
        "input.bdoy is not known here; did you mean body?"
      ])
      expect(
        yield* told("PUT", "/transformations/run", {
          code: "addHandler('transform', (r) => r)",
          request: { metod: "GET" }
        })
      ).toEqual(["400", "request.metod is not known here; did you mean method?"])
    })
  )

  it.effect("a setting of another type of destination is unknown, not ignored", () =>
    Effect.gen(function* () {
      const body = { name: "strict-type", type: "HTTP", config: { ...http.config, spreadsheet_id: "x" } }
      expect(yield* Effect.map(call("POST", "/destinations", { body }), fieldsOf)).toEqual([
        "400",
        "config.spreadsheet_id is no setting of HTTP destinations"
      ])
      const made = yield* call("POST", "/destinations", { body: { name: "strict-type", ...http } })
      const one = `/destinations/${made.body.id}`
      expect(fieldsOf(yield* call("PATCH", one, { body: { config: { spreadsheet_id: "x" } } }))).toEqual([
        "400",
        "config.spreadsheet_id is no setting of HTTP destinations"
      ])
    })
  )

  it.effect("what was read can be changed and written back, with all that only reads have", () =>
    Effect.gen(function* () {
      const source = yield* call("POST", "/sources", {
        body: { name: "strict-read", type: "STRIPE", config: { auth: { webhook_secret_key: "whsec_0123456789" } } }
      })
      const destination = yield* call("POST", "/destinations", { body: { name: "strict-read", ...http } })
      const connection = yield* call("POST", "/connections", {
        body: {
          name: "strict-read",
          source_id: source.body.id,
          destination_id: destination.body.id,
          rules: [{ type: "retry", count: 2 }]
        }
      })
      const key = (yield* somebody).token
      const written = [
        ["/transformations", { name: "strict-read", code: "addHandler('transform', (r) => r)" }],
        ["/filters", { name: "strict-read", conditions: { body: { a: 1 } } }],
        ["/workflows", { name: "strict-read", source_id: source.body.id }],
        [
          "/actions",
          { name: "strict-read", provider_key: "http", action_key: "request", inputs: { url: "https://example.com/" } }
        ]
      ] as const
      const made = [
        ["/sources", source],
        ["/destinations", destination],
        ["/connections", connection]
      ].concat(
        yield* Effect.forEach(written, ([path, body]) =>
          Effect.map(call("POST", path, { body, key }), (a) => [path, a])
        )
      )
      for (const [path, { body, status }] of made as unknown as ReadonlyArray<readonly [string, Answer]>) {
        expect([path, Math.floor(status / 100), body?.message]).toEqual([path, 2, undefined])
        for (const method of ["PUT", "PATCH"]) {
          const read = yield* call("GET", `${path}/${body.id}`, { key })
          const back = yield* call(method, `${path}/${body.id}`, { key, body: { ...read.body, name: "strict-back" } })
          expect([path, method, back.status, back.body.data]).toEqual([path, method, 200, undefined])
        }
        // A copy has no secret that a mask could stand for.
        if (path === "/sources") continue
        const read = yield* call("GET", `${path}/${body.id}`, { key })
        const copy = { ...read.body, name: "strict-copy" }
        expect([path, (yield* call("PUT", path, { body: copy, key })).status]).toEqual([path, 200])
      }
    })
  )

  it.effect("a caller that prefers lenient handling has them left out, and is told so", () =>
    Effect.gen(function* () {
      const list = yield* call("GET", "/events?stauts=FAILED", { headers: lenient })
      expect([list.status, list.headers.get("preference-applied")]).toEqual([200, "handling=lenient"])
      const body = { name: "lenient", tpye: "X", config: { ...http.config, atuh: {} }, description: "kept" }
      const made = yield* call("POST", "/destinations", { body, headers: lenient })
      expect([made.status, made.body.description, made.headers.get("preference-applied")]).toEqual([
        200,
        "kept",
        "handling=lenient"
      ])
      const rules = [{ type: "retry", count: 2, cuont: 3 }]
      const source = yield* call("POST", "/sources", { body: { name: "lenient" } })
      const connection = { name: "lenient", source_id: source.body.id, destination_id: made.body.id, rules }
      const refused = yield* call("POST", "/connections", { body: connection })
      expect([refused.body.code, refused.body.message]).toEqual([
        "RULE_INVALID",
        "rules[0].cuont: is not a field of this rule; did you mean count?"
      ])
      const taken = yield* call("POST", "/connections", { body: connection, headers: lenient })
      expect([taken.status, taken.body.rules[0].count]).toEqual([200, 2])
    })
  )

  it.effect(
    "a number where there must be an object is refused, with however many digits and however it is handled",
    () =>
      Effect.gen(function* () {
        const source = yield* call("POST", "/sources", { body: { name: "number" } })
        for (const headers of [{}, lenient]) {
          for (const digits of ["5", "12345678901234567891", "0.1000000000000000055", "1e400"]) {
            for (const [path, body] of [
              ["/sources", `{"name":"number-${digits}","config":${digits}}`],
              ["/destinations", `{"name":"number-${digits}","config":${digits},"tpye":1}`],
              ["/workflows", `{"name":"number-${digits}","source_id":"${source.body.id}","steps":[${digits}]}`]
            ] as const) {
              const { status } = yield* call("POST", path, {
                body,
                headers: { ...headers, "content-type": "application/json" }
              })
              expect([path, digits, status]).toEqual([path, digits, 400])
            }
          }
        }
      })
  )

  it.effect("a provider's source without its secret is made with a warning, which goes when it has one", () =>
    Effect.gen(function* () {
      const made = yield* call("POST", "/sources", { body: { name: "unverified", type: "STRIPE" } })
      expect([made.status, made.body.warnings]).toEqual([
        200,
        [
          {
            code: "NOT_VERIFIED",
            message: "nothing of STRIPE is verified, and everybody can send: write webhook_secret_key into config.auth",
            path: "config.auth"
          }
        ]
      ])
      const one = `/sources/${made.body.id}`
      expect((yield* call("GET", one)).body).not.toHaveProperty("warnings")
      const renamed = yield* call("PATCH", one, { body: { ...made.body, name: "unverified-2" } })
      expect([renamed.status, renamed.body.warnings?.length]).toEqual([200, 1])
      const mended = yield* call("PATCH", one, {
        body: { config: { auth: { webhook_secret_key: "whsec_0123456789" } } }
      })
      expect([mended.status, mended.body.warnings]).toEqual([200, undefined])
    })
  )

  it.effect("a preference that is none, and one for strict handling, change nothing", () =>
    Effect.gen(function* () {
      for (const prefer of ["handling=strict, handling=lenient", "lenient", "(", "x".repeat(5_000)]) {
        const answer = yield* call("GET", "/events?stauts=FAILED", { headers: { prefer } })
        expect([prefer.slice(0, 40), answer.status]).toEqual([prefer.slice(0, 40), 400])
      }
      const answer = yield* call("GET", "/sources", { headers: { prefer: "handling=strict" } })
      expect(answer.headers.get("preference-applied")).toBe("handling=strict")
      expect((yield* call("GET", "/sources")).headers.get("preference-applied")).toBeNull()
    })
  )

  it.effect("who is not let in is told that, and nothing of parameters", () =>
    Effect.gen(function* () {
      expect((yield* call("GET", "/events?stauts=FAILED", { key: null })).status).toBe(401)
      const elsewhere = yield* call("GET", `/nowhere/${newId(prefixes.source, 0)}?x=1`, { headers: lenient })
      expect([elsewhere.status, elsewhere.headers.get("preference-applied")]).toEqual([404, null])
    })
  )

  it.effect("names without end are compared and told within bounds", () =>
    Effect.gen(function* () {
      const names = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`stauts_${i}`, i]))
      const since = performance.now()
      const answer = yield* call("POST", "/events/bulk_operations", { body: { ...names, ["s".repeat(100_000)]: 1 } })
      expect(answer.status).toBe(400)
      expect(answer.body.data.fields).toHaveLength(20)
      expect(JSON.stringify(answer.body).length).toBeLessThan(10_000)
      expect(performance.now() - since).toBeLessThan(2_000)
    })
  )
})
