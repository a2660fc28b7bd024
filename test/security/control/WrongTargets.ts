import type { ControlCase } from "./Case.ts"

const get = (path: string, status: number, code: string): ControlCase => ({
  name: path.length > 100 ? `${path.slice(0, 100)}…` : path,
  method: "GET",
  path,
  status,
  code
})

const bad = (path: string, code = "VALIDATION_ERROR"): ControlCase => get(path, 400, code)

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/** Cursors that nobody was given. */
const forgedCursors = [
  "abc",
  "e30",
  encode({}),
  encode([]),
  encode(null),
  encode({ t: 0, i: "req_0" }),
  encode({ at: "2026-01-01T00:00:00.000Z", id: "'; drop table requests; --" }),
  encode(["2026-01-01T00:00:00.000Z", "req_00000000000000000000000000"]),
  "%2B%2F%3D",
  "A".repeat(1_999),
  "undefined",
  "-1"
]

export const wrongQueries: ReadonlyArray<ControlCase> = [
  ...[
    "sources",
    "destinations",
    "connections",
    "transformations",
    "transformations/{transformation}/executions",
    "requests",
    "events",
    "attempts"
  ].flatMap((list) =>
    ["abc", "0", "-1", "1.5", "1e2x", "NaN", "0x10", "%20", "", "1,2", "9".repeat(201)].map((limit) =>
      bad(`/v1/${list}?limit=${limit}`)
    )
  ),
  ...["sources", "destinations", "connections"].flatMap((list) => [
    bad(`/v1/${list}?order_by=id`),
    bad(`/v1/${list}?order_by=created_at;drop`),
    bad(`/v1/${list}?order_by=`),
    bad(`/v1/${list}?dir=down`),
    bad(`/v1/${list}?dir=asc%20nulls%20first`),
    bad(`/v1/${list}?include_disabled=yes`),
    bad(`/v1/${list}?include_disabled=1`),
    bad(`/v1/${list}?include_disabled=TRUE`),
    bad(`/v1/${list}?limit=1&limit=2`),
    bad(`/v1/${list}?name=a&name=b`),
    bad(`/v1/${list}?name=${"x".repeat(201)}`),
    bad(`/v1/${list}?id=${Array.from({ length: 101 }, (_, i) => `x${i}`).join(",")}`),
    bad(`/v1/${list}?q=%ff`),
    bad(`/v1/${list}?%00=1`),
    bad(`/v1/${list}?name=%c3%28`)
  ]),
  ...["include_counts=1", "include_metrics=yes", "order_by=id", "dir=down", "limit=0", "name=a&name=b"].map(
    (parameter) => bad(`/v1/transformations?${parameter}`)
  ),
  ...["log_level=loud", "log_level=info,none", "from=yesterday", "to=2026-02-30", `cursor=${"x".repeat(2_001)}`].map(
    (parameter) => bad(`/v1/transformations/{transformation}/executions?${parameter}`)
  ),
  bad("/v1/transformations/{transformation}/executions?from=now&to=now-1h", "INVALID_TIME_RANGE"),
  ...forgedCursors.map((cursor) =>
    bad(`/v1/transformations/{transformation}/executions?cursor=${cursor}`, "INVALID_CURSOR")
  ),
  bad(`/v1/transformations/{transformation}/executions/txe_1?request_id=${"x".repeat(201)}`),
  bad("/v1/connections?paused=maybe"),
  ...[
    "requests?cursor",
    "events?cursor",
    "events?next",
    "attempts?cursor",
    "attempts?prev",
    "sources?cursor",
    "filters?next",
    "request-fixtures?cursor",
    "events/bulk_operations?cursor"
  ].flatMap((parameter) => forgedCursors.map((cursor) => bad(`/v1/${parameter}=${cursor}`, "INVALID_CURSOR"))),
  ...["requests", "events"].flatMap((list) => [
    bad(`/v1/${list}?from=now&to=now-1h`, "INVALID_TIME_RANGE"),
    bad(`/v1/${list}?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z`, "INVALID_TIME_RANGE"),
    bad(`/v1/${list}/count?from=now&to=now-1h`, "INVALID_TIME_RANGE"),
    bad(`/v1/${list}?from=yesterday`),
    bad(`/v1/${list}?from=now-`),
    bad(`/v1/${list}?from=now-1w`),
    bad(`/v1/${list}?from=now%2B1h`),
    bad(`/v1/${list}?to=2026-13-01T00:00:00Z`),
    bad(`/v1/${list}?to=2026-02-30T00:00:00Z`),
    bad(`/v1/${list}?to=1e99`),
    bad(`/v1/${list}?from=${"9".repeat(61)}`),
    bad(`/v1/${list}?from=now-1h&from=now-2h`),
    bad(`/v1/${list}?status=DONE`),
    bad(`/v1/${list}?include=everything`),
    bad(`/v1/${list}?q=${"x".repeat(201)}`),
    bad(`/v1/${list}?cursor=${"x".repeat(2_001)}`)
  ]),
  bad("/v1/requests?verified=2"),
  bad("/v1/requests?is_retry=no"),
  bad("/v1/requests?retry_kind=double"),
  bad("/v1/requests?status=accepted&status=rejected"),
  bad("/v1/events?batch_operation_scope=all"),
  bad("/v1/attempts?next=a&prev=b", "INVALID_CURSOR"),
  bad("/v1/attempts?prev=e30", "INVALID_CURSOR"),
  bad("/v1/attempts?status=PENDING"),
  bad("/v1/attempts?order_by=name"),
  bad("/v1/requests/{request}/events?status=LOST"),
  bad("/v1/requests/{request}/events?limit=0"),
  bad("/v1/requests/{request}/ignored_events?limit=ten"),
  ...["sources", "events", "requests/count"].map((list) =>
    get(`/v1/${list}?team_id=tm_of_somebody_else`, 403, "TEAM_FORBIDDEN")
  )
]

/** Ids of nothing, of something else, and of somebody who tries. */
const wrongIds: ReadonlyArray<readonly [id: string, status: number, code: string]> = [
  ["x", 404, "NOT_FOUND"],
  ["{event}x", 404, "NOT_FOUND"],
  ["{connection}", 404, "NOT_FOUND"],
  ["SRC_00000000000000000000000000", 404, "NOT_FOUND"],
  ["src_00000000000000000000000000", 404, "NOT_FOUND"],
  ["%27%20or%20%271%27=%271", 404, "NOT_FOUND"],
  ["1%3Bdrop%20table%20sources", 404, "NOT_FOUND"],
  ["%25", 404, "NOT_FOUND"],
  ["_", 404, "NOT_FOUND"],
  ["*", 404, "NOT_FOUND"],
  ["null", 404, "NOT_FOUND"],
  ["__proto__", 404, "NOT_FOUND"],
  ["%F0%9F%92%A5", 404, "NOT_FOUND"],
  ["%0d%0aset-cookie:x=1", 404, "NOT_FOUND"],
  ["..%2f..%2fetc%2fpasswd", 404, "NOT_FOUND"],
  ["%00", 400, "VALIDATION_ERROR"],
  ["%", 400, "VALIDATION_ERROR"],
  ["%zz", 400, "VALIDATION_ERROR"],
  ["%ff%fe", 400, "VALIDATION_ERROR"],
  ["%c0%ae%c0%ae", 400, "VALIDATION_ERROR"]
]

/** Calls on one resource: where `*` stands, an id is expected. Of each kind, one that is not a connection's. */
const onOne = [
  "GET /v1/sources/*",
  "DELETE /v1/destinations/*",
  "PUT /v1/sources/*/disable",
  "GET /v1/requests/*",
  "GET /v1/requests/*/trace",
  "GET /v1/events/*",
  "POST /v1/events/*/retry",
  "GET /v1/attempts/*",
  "GET /v1/transformations/*",
  "DELETE /v1/transformations/*",
  "GET /v1/transformations/*/executions",
  "GET /v1/transformations/{transformation}/executions/*"
]

const allMethods = ["GET", "POST", "PUT", "PATCH", "DELETE"]

/** Every route and the methods it has; all others are refused. */
const routes: Readonly<Record<string, ReadonlyArray<string>>> = {
  "/v1/sources": ["GET", "POST", "PUT"],
  "/v1/sources/{source}": ["GET", "PATCH", "PUT", "DELETE"],
  "/v1/sources/{source}/disable": ["PUT", "POST"],
  "/v1/sources/{source}/enable": ["PUT", "POST"],
  "/v1/destinations": ["GET", "POST", "PUT"],
  "/v1/destinations/{destination}": ["GET", "PATCH", "PUT", "DELETE"],
  "/v1/destinations/{destination}/disable": ["PUT", "POST"],
  "/v1/destinations/{destination}/enable": ["PUT", "POST"],
  "/v1/connections": ["GET", "POST", "PUT"],
  "/v1/connections/{connection}": ["GET", "PATCH", "PUT", "DELETE"],
  "/v1/connections/{connection}/pause": ["PUT", "POST"],
  "/v1/connections/{connection}/unpause": ["PUT", "POST"],
  "/v1/connections/{connection}/disable": ["PUT", "POST"],
  "/v1/connections/{connection}/enable": ["PUT", "POST"],
  "/v1/connections/{connection}/latest-input": ["GET"],
  "/v1/transformations": ["GET", "POST", "PUT"],
  "/v1/transformations/{transformation}": ["GET", "PATCH", "PUT", "DELETE"],
  "/v1/transformations/{transformation}/executions": ["GET"],
  "/v1/transformations/{transformation}/executions/txe_1": ["GET"],
  "/v1/requests": ["GET"],
  "/v1/requests/count": ["GET"],
  "/v1/requests/{request}": ["GET"],
  "/v1/requests/{request}/trace": ["GET"],
  "/v1/requests/{request}/events": ["GET"],
  "/v1/requests/{request}/ignored_events": ["GET"],
  "/v1/events": ["GET"],
  "/v1/events/count": ["GET"],
  "/v1/events/{event}": ["GET"],
  "/v1/events/{event}/retry": ["POST"],
  "/v1/attempts": ["GET"],
  "/v1/attempts/{attempt}": ["GET"]
}

export const wrongPaths: ReadonlyArray<ControlCase> = [
  ...onOne.flatMap((route) =>
    wrongIds.map(([id, status, code]): ControlCase => {
      const [method = "", path = ""] = route.split(" ")
      return { name: `id ${id} for ${path}`, method, path: path.replace("*", id), status, code }
    })
  ),
  ...Object.entries(routes).flatMap(([path, methods]) =>
    allMethods
      .filter((method) => !methods.includes(method))
      .map((method): ControlCase => ({ name: path, method, path, status: 405, code: "METHOD_NOT_ALLOWED" }))
  ),
  ...[
    "/v2/sources",
    "/v1/v1/sources",
    "//v1/sources",
    "/v1/source",
    "/v1/sources/{source}/nonsense",
    "/v1/transformations/{transformation}/run",
    "/v1/transformations/run/x",
    "/v1/sources/{source}/disable/x",
    "/v1/sources/../sources",
    "/v1/./sources",
    "/v1/sources%2f{source}",
    "/v1%2fsources",
    "/.git/config",
    "/etc/passwd",
    "/e",
    "/E/{source}",
    "/v1/e/{source}",
    "/%65/{source}",
    `/v1/sources/${"x".repeat(8_000)}`,
    `/v1/${"a/".repeat(2_000)}`,
    "/v1/sources;x=1"
  ].map((path) => get(path, 404, "ROUTE_NOT_FOUND")),
  bad("/v1/sources%"),
  bad("/v1/%00"),
  bad("/%c0%af")
]
