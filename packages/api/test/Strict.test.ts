import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { newId, prefixes } from "@tidegate/model/Ids"
import { providerRow } from "../../channels/test/providerRow.ts"
import { Api } from "../src/contract/Api.ts"
import { type Answer, call } from "./ControlServer.ts"
import { siteAdmin, somebody, withAdmins } from "./SignedIn.ts"
import { processorTime } from "../../runtime/test/processorTime.ts"

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

type Way = ReadonlyArray<string>
interface Members {
  readonly [name: string]: unknown
}

const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null

const valueAt = (body: Members, at: Way): Members => at.reduce<Members>((inner, name) => inner[name] as Members, body)

/** Where objects stand in a body, itself first. */
const objectsIn = (value: unknown, at: Way = []): ReadonlyArray<Way> =>
  isMembers(value)
    ? [
        ...(Array.isArray(value) ? [] : [at]),
        ...Object.entries(value).flatMap(([name, inner]) => objectsIn(inner, [...at, name]))
      ]
    : []

/** The body with other members in one of its objects; undefined takes one away. */
const changed = (body: Members, at: Way, members: Members): Members => {
  const copy = structuredClone(body)
  Object.assign(valueAt(copy, at), members)
  return copy
}

/** Names there are one's own: whatever stands there is known. */
const isOnesOwn = (at: Way): boolean =>
  /(?:^|\.)(?:env|headers|query|body|context|output)(?:\.|$)/.test(at.join(".")) ||
  // Between conditions of what is asked about and operators nobody can tell.
  /(?:^|\.)(?:conditions|match)\.\w+\./.test(`${at.join(".")}.`)

const fieldsOf = ({ body, status }: Answer): ReadonlyArray<string> => [
  String(status),
  ...(body?.data?.fields ?? []).map(({ message, path }: Record<string, string>) => `${path} ${message}`)
]

const lenient = { prefer: "respond-async, handling=lenient" }
const http = { type: "HTTP", config: { url: "https://api.example.com/hooks" } }

/** Every call that takes a body, to something that is there, with the example of the document. */
const world = Effect.gen(function* () {
  const key = (yield* somebody).token
  const name = `w${key.slice(4, 16)}`
  const make = (path: string, body: object) =>
    Effect.map(call("POST", path, { body: { name, ...body }, key }), ({ body, status }) => {
      expect([path, Math.floor(status / 100), body.message]).toEqual([path, 2, undefined])
      return (body.data ?? body).id as string
    })
  const source_id = yield* make("/sources", {})
  const destination_id = yield* make("/destinations", http)
  const ids: Readonly<Record<string, string>> = {
    sources: source_id,
    destinations: destination_id,
    connections: yield* make("/connections", { source_id, destination_id }),
    transformations: yield* make("/transformations", { code: "addHandler('transform', (r) => r)" }),
    filters: yield* make("/filters", { conditions: { body: { a: 1 } } }),
    actions: yield* make("/actions", { provider_key: "http", action_key: "request", inputs: { url: http.config.url } }),
    workflows: yield* make("/workflows", {
      source_id,
      steps: [{ id: "to_crm", kind: "destination", resource_id: destination_id }],
      edges: [{ source_type: "trigger", source_step_id: null, target_step_id: "to_crm" }]
    }),
    "workflow-templates": "failed-payment-alert",
    "project-api-keys": yield* make("/project-api-keys", { scopes: ["control:read"] })
  }
  const known = JSON.stringify(Object.values(ids))
  const calls = operations.flatMap(({ method, operation, path }) => {
    const example = operation.requestBody?.content["application/json"]?.example
    // Nobody signs in here by a provider of identities.
    if (example === undefined || path === "/auth/idp/login") return []
    const body = JSON.stringify(example).replaceAll(/"([a-z]{3}_)\w{26}"/g, (id, prefix: string) =>
      known.includes(prefix) ? `"${Object.values(ids).find((one) => one.startsWith(prefix))}"` : id
    )
    return [
      {
        id: operation.operationId,
        method,
        path: path.replace(/^\/([\w-]+)\/none/, (_, plural: string) => `/${plural}/${ids[plural] ?? "none"}`),
        body: JSON.parse(body) as Members
      }
    ]
  })
  expect(calls.length).toBeGreaterThan(50)
  return calls
})

/** The provider of the examples. It is never called, because every body is refused before. */
const provider = { ...providerRow("http://127.0.0.1:9", "http://127.0.0.1:9"), key: "git_host" }
const withProvider = Layer.provide(withAdmins, Layer.succeed(KnownProviders, [provider]))

layer(withProvider, { excludeTestServices: true })("Unknown members and parameters", (it) => {
  it.effect("Unknown query parameter is refused with 400 at every operation", () =>
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

  it.effect("Unknown member is refused with 400 in every object of every body", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      const passed: Array<string> = []
      for (const { body, id, method, path } of yield* world) {
        for (const at of objectsIn(body)) {
          if (isOnesOwn(at)) continue
          const answer = yield* call(method, path, { body: changed(body, at, { zzz_of_nobody: 1 }), key: token })
          // The check of a definition is asked what a save is refused for: that is its answer.
          const isRefused = answer.status === 400 || answer.status === 422 || answer.body?.valid === false
          const told = JSON.stringify(answer.body?.data ?? answer.body?.issues)
          const isTold = isRefused && told?.includes("zzz_of_nobody")
          if (!isTold)
            passed.push(`${id} ${at.join(".")} ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`)
        }
      }
      expect(passed).toEqual([])
    })
  )

  it.effect("Mistyped member gets a suggestion of the right name in every body", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      const others: Array<string> = []
      let typos = 0
      for (const { body, id, method, path } of yield* world) {
        for (const at of objectsIn(body)) {
          for (const [name, value] of Object.entries(valueAt(body, at))) {
            if (isOnesOwn(at) || name.length < 4) continue
            const typo = `${name[0]}${name[2]}${name[1]}${name.slice(3)}`
            // What kind of thing it is cannot be told without the member that says so.
            if (typo === name || (name === "type" && at[0] === "rules")) continue
            const answer = yield* call(method, path, {
              body: changed(body, at, { [typo]: value, [name]: undefined }),
              key: token
            })
            typos++
            if (!JSON.stringify(answer.body).includes(`did you mean ${name}?`))
              others.push(
                `${id} ${[...at, name].join(".")} ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`
              )
          }
        }
      }
      expect(others).toEqual([])
      expect(typos).toBeGreaterThan(200)
    })
  )

  it.effect("Body is refused with 400 at every call that takes none, unless it is empty", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      const bodyless = operations.filter(
        ({ method, operation }) =>
          method !== "GET" && operation.requestBody === undefined && operation["x-any-parameters"] !== true
      )
      expect(bodyless.length).toBeGreaterThan(30)
      for (const { method, operation, path } of bodyless) {
        const about = operation.operationId
        const sent = (body: unknown, headers = {}) => call(method, path, { body, headers, key: token })
        const refused = yield* sent({ until: "tomorrow", zzz_of_nobody: 1 })
        expect([about, ...fieldsOf(refused)]).toEqual([
          about,
          "400",
          "until is not known here: this call takes no body",
          "zzz_of_nobody is not known here: this call takes no body"
        ])
        expect([about, ...fieldsOf(yield* sent("a=b"))]).toEqual([about, "400", "body is not taken by this call"])
        // Who logs out is let in no more.
        if (path === "/auth/logout") continue
        for (const [body, headers] of [
          [{}, {}],
          ["", {}],
          ["null", {}],
          [{ until: "tomorrow" }, lenient]
        ] as const) {
          const answer = yield* sent(body, headers)
          expect([about, body, JSON.stringify(answer.body)]).toEqual([
            about,
            body,
            expect.not.stringContaining("takes no body")
          ])
          expect([about, body, JSON.stringify(answer.body)]).toEqual([
            about,
            body,
            expect.not.stringContaining("is not taken")
          ])
        }
      }
    })
  )

  it.effect("Lenient handling ignores unknown members at every operation and confirms it in the answer", () =>
    Effect.gen(function* () {
      const { token } = yield* siteAdmin
      for (const { method, operation, path } of operations) {
        if (operation["x-any-parameters"] === true || path === "/auth/logout") continue
        const example = operation.requestBody?.content["application/json"]?.example
        const answer = yield* call(method, `${path}?retried_=false`, {
          key: token,
          headers: lenient,
          ...(example === undefined ? {} : { body: { ...example, zzz_of_nobody: 1 } })
        })
        const about = operation.operationId
        expect([about, answer.headers.get("preference-applied")]).toEqual([about, "handling=lenient"])
        expect([about, JSON.stringify(answer.body)]).toEqual([
          about,
          expect.not.stringMatching(/zzz_of_nobody|retried_/)
        ])
      }
    })
  )

  it.effect("Unknown name is reported with its path and the nearest known name", () =>
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

  it.effect("Setting of another destination type is refused as unknown", () =>
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

  it.effect("Resource can be written back as it was read, with its read-only members", () =>
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

  it.effect("Lenient call ignores unknown members and gets a header that confirms it", () =>
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
    "Number in place of an object is refused, however many digits it has and also with lenient handling of the call",
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

  it.effect("Source of a provider without its secret gets a warning until it has one", () =>
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

  it.effect("Unknown preferences and strict handling do not change the answer", () =>
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

  it.effect("Call without a valid credential or route reports only that and no unknown parameters", () =>
    Effect.gen(function* () {
      expect((yield* call("GET", "/events?stauts=FAILED", { key: null })).status).toBe(401)
      const elsewhere = yield* call("GET", `/nowhere/${newId(prefixes.source, 0)}?x=1`, { headers: lenient })
      expect([elsewhere.status, elsewhere.headers.get("preference-applied")]).toEqual([404, null])
    })
  )

  it.effect("Comparison and report of unknown names are limited in time and size", () =>
    Effect.gen(function* () {
      const names = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`stauts_${i}`, i]))
      const spent = processorTime()
      const answer = yield* call("POST", "/events/bulk_operations", { body: { ...names, ["s".repeat(100_000)]: 1 } })
      expect(answer.status).toBe(400)
      expect(answer.body.data.fields).toHaveLength(20)
      expect(JSON.stringify(answer.body).length).toBeLessThan(10_000)
      expect(spent()).toBeLessThan(2_000)
    })
  )
})
