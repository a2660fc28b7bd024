import { expect, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { call, layer as server } from "./ControlServer.ts"

/*
 * Whatever is sent, the answer is never a fault of ours: no 5xx, and every error in the one shape.
 */

const check = Effect.fnUntraced(function* (method: string, path: string, body?: string) {
  const answer = yield* call(method, path, body === undefined ? {} : { body })
  if (answer.status >= 500) expect([method, path, body, answer.body]).toEqual("an answer below 500")
  if (answer.status >= 400) {
    expect(answer.body).toMatchObject({ code: expect.any(String), status: answer.status, message: expect.any(String) })
  }
})

/** What a body may hold where it is understood, and what else may stand there. */
const Member = Schema.Union([
  Schema.Json,
  Schema.Literals(["", "x", "https://example.com/", "enabled", "HMAC", "BASIC_AUTH", "src_1", "2026-01-01", "1e9"]),
  Schema.Int
])
const Config = Schema.Record(
  Schema.Literals([
    "url",
    "auth_type",
    "auth",
    "custom_response",
    "mode",
    "proxy",
    "allowed_http_methods",
    "http_method",
    "rate_limit",
    "rate_limit_period",
    "max_concurrency",
    "path"
  ]),
  Schema.optionalKey(Member)
)
const Rule = Schema.Record(
  Schema.Literals(["strategy", "count", "interval", "delay", "body", "headers", "path", "response_status_codes"]),
  Schema.optionalKey(Member)
)
const Body = Schema.Struct({
  description: Schema.optionalKey(Member),
  type: Schema.optionalKey(Schema.Union([Member, Schema.Literals(["WEBHOOK", "STRIPE", "HTTP", "MOCK_API"])])),
  status: Schema.optionalKey(Member),
  config: Schema.optionalKey(Schema.Union([Config, Member])),
  name: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.Union([Member, Schema.Literal("syntax")])),
  env: Schema.optionalKey(Member),
  request: Schema.optionalKey(
    Schema.Union([
      Schema.Struct({
        headers: Schema.optionalKey(Member),
        body: Schema.optionalKey(Member),
        query: Schema.optionalKey(Member),
        path: Schema.optionalKey(Member)
      }),
      Member
    ])
  ),
  timestamp: Schema.optionalKey(Member),
  context: Schema.optionalKey(Member),
  source_id: Schema.optionalKey(Member),
  destination: Schema.optionalKey(Member),
  disabled_at: Schema.optionalKey(Member),
  rules: Schema.optionalKey(
    Schema.Union([
      Schema.Array(Schema.Struct({ type: Schema.Literals(["retry", "delay", "filter", "deduplicate"]), more: Rule })),
      Member
    ])
  )
})

const writes = [
  ["POST", "/sources"],
  ["PUT", "/sources"],
  ["POST", "/destinations"],
  ["PUT", "/destinations"],
  ["POST", "/connections"],
  ["PUT", "/connections"],
  ["POST", "/transformations"],
  ["PUT", "/transformations"],
  ["POST", "/transformations/run"]
] as const

let made = 0

/** As text; a body without a name gets a good one, so that what else is in it decides. */
const flatten = (body: typeof Body.Type): string =>
  JSON.stringify({ name: `fuzz-${made++}`, ...body }, (_name, value: unknown) =>
    typeof value === "object" && value !== null && "more" in value
      ? { ...(value.more as object), type: "type" in value ? value.type : undefined }
      : value
  )

const lists = [
  "/sources",
  "/connections",
  "/transformations",
  "/transformations/trs_00000000000000000000000000/executions",
  "/requests",
  "/requests/count",
  "/events",
  "/events/count",
  "/attempts"
] as const
const parameters = [
  "id",
  "name",
  "type",
  "include_disabled",
  "order_by",
  "dir",
  "limit",
  "from",
  "to",
  "start",
  "cursor",
  "next",
  "prev",
  "status",
  "source_id",
  "connection_id",
  "webhook_id",
  "destination_id",
  "event_id",
  "request_id",
  "q",
  "include",
  "verified",
  "is_retry",
  "retry_kind",
  "log_level",
  "include_counts",
  "batch_operation_id",
  "batch_operation_scope",
  "team_id"
] as const
const Value = Schema.Union([
  Schema.String,
  Schema.Literals([
    "",
    ",",
    "true",
    "now-1h",
    "now",
    "FAILED",
    "HOLD,FAILED",
    "req_",
    "evt_",
    "%",
    "\\",
    "'",
    "\u0000",
    "255"
  ])
])

layer(server, { timeout: "60 seconds", excludeTestServices: true })("whatever is sent", (it) => {
  for (const [method, path] of writes) {
    it.effect.prop(`${method} ${path}`, [Body], ([body]) => check(method, path, flatten(body)), {
      arbitrary: { runs: 60 }
    })
  }

  it.effect.prop(
    "queries",
    [
      Schema.Literals(lists),
      Schema.Array(Schema.Tuple([Schema.Literals(parameters), Value])).check(Schema.isMaxLength(4))
    ],
    ([path, query]) =>
      check("GET", `${path}?${new URLSearchParams(query.map(([name, value]) => [name, value])).toString()}`),
    { arbitrary: { runs: 300 } }
  )

  it.effect.prop(
    "paths",
    [
      Schema.Literals(["sources", "connections", "transformations", "requests", "events", "attempts"]),
      Schema.String,
      Schema.Literals(["GET", "DELETE", "POST"])
    ],
    ([kind, id, method]) => check(method, `/v1/${kind}/${encodeURIComponent(id.toWellFormed())}`),
    { arbitrary: { runs: 100 } }
  )

  it.effect("members that objects have by nature", () =>
    check("POST", "/sources", '{"name":"proto","__proto__":{"name":"x"},"constructor":{},"config":{"__proto__":[]}}')
  )
})
