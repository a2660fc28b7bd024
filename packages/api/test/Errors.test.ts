import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { connect } from "node:net"
import { newId, prefixes } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { BaseUrl, call, type CallOptions, layer as server, teams } from "./ControlServer.ts"

const json = (text: string | Uint8Array): CallOptions => ({ body: text })
const nested = (depth: number): string => `{"name":"x","description":${"[".repeat(depth)}${"]".repeat(depth)}}`
const unknown = newId(prefixes.source, 1_700_000_000_000)
const noneOf = (name: "source" | "destination" | "connection" | "transformation"): string =>
  `/${name}s/${newId(prefixes[name], 1_700_000_000_000)}`

const table: ReadonlyArray<
  readonly [
    name: string,
    method: string,
    path: string,
    options: CallOptions,
    expected: readonly [status: number, code: string, field?: string]
  ]
> = [
  ["no key", "GET", "/sources", { key: null }, [401, "UNAUTHENTICATED"]],
  ["an empty key", "GET", "/sources", { key: null, headers: { authorization: "Bearer " } }, [401, "UNAUTHENTICATED"]],
  [
    "another scheme",
    "GET",
    "/sources",
    { key: null, headers: { authorization: "Basic eDp5" } },
    [401, "UNAUTHENTICATED"]
  ],
  ["a wrong key", "GET", "/sources", { key: "gwk_wrong_key_1234" }, [401, "INVALID_API_KEY"]],
  ["no key with a bad body", "POST", "/sources", { key: null, body: "{" }, [401, "UNAUTHENTICATED"]],
  ["another team", "GET", "/sources", { headers: { "x-team-id": teams.b.id } }, [403, "TEAM_FORBIDDEN"]],
  ["another team in the query", "GET", `/sources?team_id=${teams.b.id}`, {}, [403, "TEAM_FORBIDDEN"]],
  [
    "two teams in the query",
    "GET",
    `/sources?team_id=${teams.a.id}&team_id=${teams.b.id}`,
    {},
    [403, "TEAM_FORBIDDEN"]
  ],
  ["an unknown route", "GET", "/nowhere", {}, [404, "ROUTE_NOT_FOUND"]],
  ["a path with /v1 twice", "GET", "/v1/v1/sources", {}, [404, "ROUTE_NOT_FOUND"]],
  ["a wrong method", "DELETE", "/sources", {}, [405, "METHOD_NOT_ALLOWED"]],
  ["a wrong method below a resource", "PATCH", `/events/${unknown}/retry`, {}, [405, "METHOD_NOT_ALLOWED"]],
  ["an unknown source", "GET", `/sources/${unknown}`, {}, [404, "NOT_FOUND"]],
  ["an unknown source to disable", "PUT", `/sources/${unknown}/disable`, {}, [404, "NOT_FOUND"]],
  ["an invalid id", "DELETE", "/sources/nonsense", {}, [404, "NOT_FOUND"]],
  ["an event's id for a source", "GET", "/sources/evt_00000000000000000000000000", {}, [404, "NOT_FOUND"]],
  ["an unknown destination", "PATCH", `/destinations/${unknown}`, { body: {} }, [404, "NOT_FOUND"]],
  ...(["source", "destination"] as const).flatMap((name) => [
    [`an unknown ${name} with a bad body`, "PATCH", noneOf(name), { body: { name: 1 } }, [404, "NOT_FOUND"]] as const,
    [`an unknown ${name} with a bad config`, "PUT", noneOf(name), { body: { config: [] } }, [404, "NOT_FOUND"]] as const
  ]),
  ...(["connection", "transformation"] as const).map(
    (name) =>
      [
        `a bad body for an unknown ${name}`,
        "PATCH",
        noneOf(name),
        { body: { name: 1 } },
        [400, "VALIDATION_ERROR", "name"]
      ] as const
  ),
  ["an unknown connection", "POST", `/connections/${unknown}/pause`, {}, [404, "NOT_FOUND"]],
  ["an unknown request", "GET", "/requests/req_1", {}, [404, "NOT_FOUND"]],
  ["an unknown request's trace", "GET", "/requests/req_1/trace", {}, [404, "NOT_FOUND"]],
  ["an unknown request's events", "GET", "/requests/req_1/events", {}, [404, "NOT_FOUND"]],
  ["an unknown event", "GET", "/events/evt_1", {}, [404, "NOT_FOUND"]],
  ["an unknown event to retry", "POST", "/events/evt_1/retry", {}, [404, "NOT_FOUND"]],
  ["an unknown attempt", "GET", "/attempts/att_1", {}, [404, "NOT_FOUND"]],
  ["broken JSON", "POST", "/sources", json("{"), [400, "INVALID_JSON"]],
  ["no body", "POST", "/sources", {}, [400, "INVALID_JSON"]],
  ["a body that is not UTF-8", "POST", "/sources", json(Buffer.from([0x7b, 0xff, 0x7d])), [400, "INVALID_JSON"]],
  ["a list as the body", "POST", "/sources", json("[]"), [400, "VALIDATION_ERROR"]],
  ["null", "PUT", "/connections", json("null"), [400, "VALIDATION_ERROR"]],
  ["no name", "POST", "/sources", { body: {} }, [400, "VALIDATION_ERROR", "name"]],
  ["no name to upsert by", "PUT", "/destinations", { body: {} }, [400, "VALIDATION_ERROR", "name"]],
  ["a number for a name", "PUT", "/sources", { body: { name: 1 } }, [400, "VALIDATION_ERROR", "name"]],
  ["a NUL in a member", "POST", "/sources", json('{"name":"a\\u0000b"}'), [400, "VALIDATION_ERROR", "name"]],
  [
    "a NUL deep inside",
    "POST",
    "/sources",
    json('{"name":"a","config":{"auth":{"x":["\\u0000"]}}}'),
    [400, "VALIDATION_ERROR", "config.auth.x.0"]
  ],
  [
    "a NUL in a member's name",
    "POST",
    "/sources",
    json('{"name":"a","config":{"\\u0000":1}}'),
    [400, "VALIDATION_ERROR", "config"]
  ],
  ["half a surrogate pair", "POST", "/sources", json('{"name":"\\ud800"}'), [400, "VALIDATION_ERROR", "name"]],
  [
    "a number beyond all bounds",
    "POST",
    "/destinations",
    json('{"name":"a","rate_limit":1e999}'),
    [400, "VALIDATION_ERROR", "config.rate_limit"]
  ],
  ["a body that is nested too deeply", "POST", "/sources", json(nested(5_000)), [400, "VALIDATION_ERROR"]],
  [
    "too many values",
    "POST",
    "/sources",
    json(`{"name":"x","x":[${"0,".repeat(100_000)}0]}`),
    [400, "VALIDATION_ERROR"]
  ],
  ["a large body", "POST", "/destinations", { body: { name: "x".repeat(1024 * 1024) } }, [413, "PAYLOAD_TOO_LARGE"]],
  [
    "text",
    "POST",
    "/sources",
    { body: "name=x", headers: { "content-type": "text/plain" } },
    [415, "UNSUPPORTED_CONTENT_TYPE"]
  ],
  [
    "a form",
    "PATCH",
    `/sources/${unknown}`,
    { body: "name=x", headers: { "content-type": "application/x-www-form-urlencoded" } },
    [415, "UNSUPPORTED_CONTENT_TYPE"]
  ],
  [
    "another charset",
    "POST",
    "/sources",
    { body: "{}", headers: { "content-type": "application/json; charset=utf-16" } },
    [415, "UNSUPPORTED_CONTENT_TYPE"]
  ],
  [
    "a compressed body",
    "POST",
    "/sources",
    { body: "{}", headers: { "content-encoding": "gzip" } },
    [415, "UNSUPPORTED_CONTENT_TYPE"]
  ],
  ["a limit that is no number", "GET", "/sources?limit=ten", {}, [400, "VALIDATION_ERROR", "limit"]],
  ["a limit of zero", "GET", "/events?limit=0", {}, [400, "VALIDATION_ERROR", "limit"]],
  ["a fraction for a limit", "GET", "/attempts?limit=1.5", {}, [400, "VALIDATION_ERROR", "limit"]],
  ["two limits", "GET", "/sources?limit=1&limit=2", {}, [400, "VALIDATION_ERROR", "limit"]],
  ["a strange order", "GET", "/sources?order_by=id", {}, [400, "VALIDATION_ERROR", "order_by"]],
  ["a strange direction", "GET", "/attempts?dir=up", {}, [400, "VALIDATION_ERROR", "dir"]],
  ["a strange boolean", "GET", "/sources?include_disabled=yes", {}, [400, "VALIDATION_ERROR", "include_disabled"]],
  ["a strange flag", "GET", "/transformations?include_counts=1", {}, [400, "VALIDATION_ERROR", "include_counts"]],
  [
    "a strange level",
    "GET",
    `/transformations/${unknown}/executions?log_level=loud`,
    {},
    [400, "VALIDATION_ERROR", "log_level"]
  ],
  ["an unknown transformation", "GET", `/transformations/${unknown}`, {}, [404, "NOT_FOUND"]],
  ["an unknown transformation's executions", "GET", "/transformations/trs_1/executions", {}, [404, "NOT_FOUND"]],
  ["an unknown execution", "GET", "/transformations/trs_1/executions/txe_1", {}, [404, "NOT_FOUND"]],
  ["no code", "POST", "/transformations", { body: { name: "x" } }, [400, "VALIDATION_ERROR", "code"]],
  [
    "code that does not compile",
    "POST",
    "/transformations",
    { body: { name: "x", code: "syntax" } },
    [400, "TRANSFORMATION_INVALID"]
  ],
  ["a strange status", "GET", "/events?status=DONE", {}, [400, "VALIDATION_ERROR", "status"]],
  ["a strange request status", "GET", "/requests?status=maybe", {}, [400, "VALIDATION_ERROR", "status"]],
  ["a strange include", "GET", "/requests?include=everything", {}, [400, "VALIDATION_ERROR", "include"]],
  ["an invalid time", "GET", "/requests?from=yesterday", {}, [400, "VALIDATION_ERROR", "from"]],
  ["an invalid day", "GET", "/events/count?to=2026-02-31", {}, [400, "VALIDATION_ERROR", "to"]],
  ["a time range that ends before it begins", "GET", "/requests?from=now&to=now-1h", {}, [400, "INVALID_TIME_RANGE"]],
  ["an invalid cursor", "GET", "/requests?cursor=abc", {}, [400, "INVALID_CURSOR"]],
  ["a cursor of another shape", "GET", "/events?cursor=eyJhIjoxfQ", {}, [400, "INVALID_CURSOR"]],
  ["cursors in both directions", "GET", "/attempts?next=a&prev=b", {}, [400, "INVALID_CURSOR"]],
  ["a NUL in the path", "GET", "/sources/%00", {}, [400, "VALIDATION_ERROR"]],
  ["a NUL in the query", "GET", "/events?q=%00", {}, [400, "VALIDATION_ERROR"]],
  ["broken percent-encoding", "GET", "/sources/%zz", {}, [400, "VALIDATION_ERROR"]],
  ["bytes that are not UTF-8 in the query", "GET", "/requests?q=%ff", {}, [400, "VALIDATION_ERROR"]],
  ["a very long id", "GET", `/sources/${"x".repeat(5_000)}`, {}, [404, "ROUTE_NOT_FOUND"]],
  ["a very long search text", "GET", `/requests?q=${"x".repeat(5_000)}`, {}, [400, "VALIDATION_ERROR", "q"]],
  [
    "endless values",
    "GET",
    `/events?connection_id=${"a,".repeat(150)}${Array.from({ length: 150 }, (_, i) => i).join(",")}`,
    {},
    [400, "VALIDATION_ERROR", "connection_id"]
  ]
]

layer(server, { excludeTestServices: true })("API errors", (it) => {
  for (const [name, method, path, options, [status, code, field]] of table) {
    for (const prefix of ["", "/v1"]) {
      it.effect(`API answers ${code} to ${name}${prefix === "" ? "" : ", below /v1"}`, () =>
        Effect.gen(function* () {
          const answer = yield* call(method, prefix + path, options)
          expect(answer).toMatchObject({
            status,
            body: { error: expect.any(String), code, status, message: expect.any(String) }
          })
          if (field !== undefined) expect(answer.body.data.fields[0].path).toBe(field)
          if (code === "NOT_FOUND") expect(answer.body.data.resource_type).toEqual(expect.any(String))
          if (status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer")
        })
      )
    }
  }

  it.effect("Call with a wrong method gets the allowed methods in its answer", () =>
    Effect.gen(function* () {
      expect((yield* call("DELETE", "/v1/sources")).headers.get("allow")).toBe("GET, POST, PUT, HEAD, OPTIONS")
      const options = yield* call("OPTIONS", "/v1/sources/", { key: null })
      expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, POST, PUT, HEAD, OPTIONS"])
    })
  )

  it.effect("HEAD request is answered like GET, without a body", () =>
    Effect.gen(function* () {
      expect(yield* call("HEAD", "/v1/sources")).toMatchObject({ status: 200 })
      expect(yield* call("HEAD", "/v1/sources", { key: null })).toMatchObject({ status: 401 })
    })
  )

  it.effect("Create with a name that is taken returns the id of the existing resource", () =>
    Effect.gen(function* () {
      for (const [path, type] of [
        ["/sources", "source"],
        ["/destinations", "destination"]
      ] as const) {
        const body = { name: "taken", config: type === "source" ? {} : { url: "https://example.com/" } }
        const first = yield* call("POST", path, { body })
        expect(first.status).toBe(200)
        expect(yield* call("POST", path, { body })).toMatchObject({
          status: 409,
          body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: first.body.id, resource_type: type } }
        })
      }
    })
  )

  it.effect("Rotated API key stops working at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const key = { key: teams.b.key }
      expect((yield* call("GET", "/sources", key)).status).toBe(200)
      yield* sql`update project_secrets set api_key_hash = ${hashToken("gwk_new_key_of_b")} where team_id = ${teams.b.id}`
      expect((yield* call("GET", "/sources", key)).body.code).toBe("INVALID_API_KEY")
      expect((yield* call("GET", "/sources", { key: "gwk_new_key_of_b" })).status).toBe(200)
      yield* sql`update project_secrets set api_key_hash = ${hashToken(teams.b.key)} where team_id = ${teams.b.id}`
    })
  )

  it.effect("Call may name the team of its own key", () =>
    Effect.gen(function* () {
      expect((yield* call("GET", "/sources", { headers: { "x-team-id": teams.a.id } })).status).toBe(200)
      expect((yield* call("GET", `/sources?team_id=${teams.a.id}`)).status).toBe(200)
      // The header goes before the query.
      const both = yield* call("GET", `/sources?team_id=${teams.b.id}`, { headers: { "x-team-id": teams.a.id } })
      expect(both.status).toBe(200)
    })
  )

  it.effect("Internal error reveals no details", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { body } = yield* call("POST", "/sources", { body: { name: "damaged" } })
      yield* sql`update sources set config = '{"allowed_http_methods":"confidential"}' where id = ${body.id}`
      const answer = yield* call("GET", `/sources/${body.id}`)
      expect(answer).toMatchObject({ status: 500, body: { error: "Internal error", code: "INTERNAL_ERROR" } })
      expect(JSON.stringify(answer.body)).not.toMatch(/confidential|Schema|config/)
      yield* sql`delete from sources where id = ${body.id}`
    })
  )

  it.effect("Request body without a known length is refused when it is too long", () =>
    Effect.gen(function* () {
      const { hostname, port } = new URL(yield* BaseUrl)
      const answer = yield* Effect.callback<string>((resume) => {
        const socket = connect(Number(port), hostname)
        let text = ""
        socket.on("data", (chunk) => {
          text += chunk.toString("latin1")
          if (text.includes("PAYLOAD_TOO_LARGE")) {
            socket.destroy()
            resume(Effect.succeed(text))
          }
        })
        socket.on("error", (error) => resume(Effect.succeed(`${text} ${error.message}`)))
        socket.write(
          `POST /v1/destinations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${teams.a.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
        )
        const chunk = `10000\r\n${" ".repeat(0x10000)}\r\n`
        for (let i = 0; i < 20; i++) socket.write(chunk)
      })
      expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    })
  )
})
