import { expect, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { OpenApi } from "effect/http-api"
import { Api } from "../src/contract/Api.ts"
import { type Deprecated, Deprecations, deprecated, markDeprecated } from "../src/contract/Deprecation.ts"
import { call, layer as server } from "./ControlServer.ts"

const dates = {
  since: "2027-01-31",
  sunset: "2027-11-30",
  instead: "use `getSource`",
  link: "https://gateway.example.com/docs/guides/versions.md"
}
const rows: ReadonlyArray<Deprecated> = [
  { what: { operation: "listSources" }, ...dates },
  { what: { component: "Source", member: "description" }, ...dates }
]

const headers = ["deprecation", "sunset", "link"] as const

layer(Layer.provide(server, Layer.succeed(Deprecations, rows)), { excludeTestServices: true })(
  "Deprecated operation",
  (it) => {
    it.effect("Every answer of a deprecated operation says since when, until when, and where to read more", () =>
      Effect.gen(function* () {
        const expected = [
          "@1801353600",
          "Tue, 30 Nov 2027 00:00:00 GMT",
          '<https://gateway.example.com/docs/guides/versions.md>; rel="deprecation"; type="text/html"'
        ]
        for (const [method, path, status] of [
          ["GET", "/sources", 200],
          ["HEAD", "/v1/sources/", 200],
          ["GET", "/sources?unknown=1", 400]
        ] as const) {
          const answer = yield* call(method, path)
          expect([path, answer.status, ...headers.map((name) => answer.headers.get(name))]).toEqual([
            path,
            status,
            ...expected
          ])
        }
      })
    )

    it.effect("Other operations of the same path, and those with a deprecated member, have no such header", () =>
      Effect.gen(function* () {
        const made = yield* call("POST", "/sources", { body: { name: "a", type: "WEBHOOK" } })
        const read = yield* call("GET", `/sources/${made.body.id}`)
        for (const answer of [made, read, yield* call("GET", "/nothing")])
          expect(headers.map((name) => answer.headers.get(name))).toEqual([null, null, null])
      })
    )
  }
)

const document = OpenApi.fromApi(Api) as unknown as Parameters<typeof markDeprecated>[0]

test("Document marks a deprecated operation and a deprecated member, and nothing else", () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  const before = document as any
  const after = markDeprecated(before, rows)
  const said = "Deprecated since 2027-01-31, may be gone from 2027-11-30: use `getSource`"
  expect(after.paths["/sources"].get).toMatchObject({ deprecated: true, description: expect.stringContaining(said) })
  expect(after.components.schemas.Source.properties.description).toMatchObject({
    deprecated: true,
    description: expect.stringContaining(said)
  })
  delete after.paths["/sources"].get
  delete after.components.schemas.Source.properties.description
  expect(JSON.stringify(after)).not.toContain('"deprecated":true')
  expect(before.paths["/sources"].get).not.toHaveProperty("deprecated")
})

test("Deprecation of something that does not exist is refused", () => {
  for (const what of [{ operation: "listNothing" }, { component: "Source", member: "nothing" }])
    expect(() => markDeprecated(document, [{ what, ...dates }])).toThrow("is not in the document")
})

test("Every deprecation lasts half a year at least", () => {
  for (const { since, sunset } of deprecated)
    expect(Date.parse(sunset) - Date.parse(since)).toBeGreaterThanOrEqual(181 * 86_400_000)
})
