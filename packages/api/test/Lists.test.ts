import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type History, makeHistory } from "../../storage/test/reads/History.ts"
import { newId, prefixes } from "@tidegate/model/Ids"
import { type Answer, call, layer as server, teams } from "./ControlServer.ts"

/** Team A's history: 1,000 requests in the last two hours; as much of team B's. */
class Histories extends Context.Service<Histories, { readonly a: History; readonly b: History }>()(
  "@tidegate/api/test/Histories"
) {
  static readonly layer = Layer.effect(
    Histories,
    Effect.gen(function* () {
      const to = Date.now()
      const range = { requests: 1_000, from: to - 7_200_000, to }
      return {
        a: yield* makeHistory({ team: teams.a.id, ...range }),
        b: yield* makeHistory({ team: teams.b.id, ...range })
      }
    })
  ).pipe(Layer.provideMerge(server))
}

interface Row {
  readonly id: string
  readonly [member: string]: unknown
}

/** Every page of a list, by its cursor; checks on the way what holds for all pages. */
const pages = Effect.fnUntraced(function* (
  path: string,
  between: Effect.Effect<void, unknown, SqlClient.SqlClient> = Effect.void
) {
  const rows: Array<Row> = []
  let cursor: string | null = null
  let last: Answer
  do {
    last = yield* call("GET", `${path}${path.includes("?") ? "&" : "?"}${cursor === null ? "" : `cursor=${cursor}`}`)
    expect(last.status).toBe(200)
    expect(last.body.count).toBe(last.body.models.length)
    rows.push(...last.body.models)
    cursor = (last.body.pagination.next ?? last.body.next_cursor ?? null) as string | null
    if ("total" in last.body) {
      expect([last.body.total, last.body.total_exact]).toEqual([rows.length, cursor === null])
      expect(last.body.next).toBe(cursor)
    }
    yield* between
  } while (cursor !== null)
  return { rows, last }
})

const ids = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => rows.map((row) => row.id)
const newestFirst = (values: ReadonlyArray<string>): ReadonlyArray<string> => values.toSorted().toReversed()

/** The ids that SQL finds, newest first. */
const stored = Effect.fnUntraced(function* (table: string, condition: string, team: string = teams.a.id) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ id: string }>(`select id from ${table} where team_id = $1 and ${condition}`, [team])
  return newestFirst(ids(rows))
})

const anHourAgo = new Date(Date.now() - 3_600_000).toISOString()

const lists: ReadonlyArray<
  readonly [path: (history: History) => string, table: string, condition: (history: History) => string]
> = [
  [() => "/requests?", "requests", () => "true"],
  [() => "/requests?status=rejected", "requests", () => "status = 'rejected'"],
  [() => "/requests?status=accepted&verified=true", "requests", () => "status = 'accepted' and verified"],
  [() => "/requests?verified=false", "requests", () => "not verified"],
  [({ sources }) => `/requests?source_id=${sources[1]}`, "requests", ({ sources }) => `source_id = '${sources[1]}'`],
  [
    ({ sources }) => `/requests?source_id=${sources[0]},${sources[3]}&status=accepted`,
    "requests",
    ({ sources }) => `source_id in ('${sources[0]}', '${sources[3]}') and status = 'accepted'`
  ],
  [
    ({ connections }) => `/requests?webhook_id=${connections[1]}`,
    "requests",
    ({ connections }) =>
      `right(id, 26) in (select right(id, 26) from events where connection_id = '${connections[1]}' union select right(id, 26) from ignored_events where connection_id = '${connections[1]}')`
  ],
  [
    ({ connections }) => `/requests?connection_id=${connections[1]}&connection_id=${connections[2]}`,
    "requests",
    ({ connections }) =>
      `right(id, 26) in (select right(id, 26) from events where connection_id in ('${connections[1]}', '${connections[2]}') union select right(id, 26) from ignored_events where connection_id in ('${connections[1]}', '${connections[2]}'))`
  ],
  [() => "/requests?is_retry=true", "requests", () => "false"],
  [() => "/requests?is_retry=false&retry_kind=single", "requests", () => "false"],
  [() => "/requests?q=ext-77", "requests", () => "external_id like 'ext-77%'"],
  [() => "/requests?search=ext-%25", "requests", () => "false"],
  [() => "/requests?search_term=req_", "requests", () => "true"],
  [() => "/requests?batch_operation_id=bch_1", "requests", () => "false"],
  [() => `/requests?from=${anHourAgo}&to=now`, "requests", () => `created_at >= '${anHourAgo}'`],
  [() => "/events?", "events", () => "true"],
  [() => "/events?status=SUCCESSFUL", "events", () => "state = 'SUCCESSFUL'"],
  [() => "/events?status=failed", "events", () => "state = 'FAILED'"],
  [() => "/events?status=FAILED&status=CANCELLED", "events", () => "failed"],
  [() => "/events?status=QUEUED", "events", () => "state = 'PENDING'"],
  [() => "/events?status=QUEUED,FAILED,SUCCESSFUL", "events", () => "state <> 'CANCELLED'"],
  [() => "/events?status=HOLD", "events", () => "false"],
  [
    ({ destinations }) => `/events?destination_id=${destinations[2]}&status=FAILED`,
    "events",
    ({ destinations }) => `destination_id = '${destinations[2]}' and state = 'FAILED'`
  ],
  [
    ({ connections }) => `/events?webhook_id=${connections[7]},${connections[8]}`,
    "events",
    ({ connections }) => `connection_id in ('${connections[7]}', '${connections[8]}')`
  ],
  [
    ({ connections, sources }) => `/events?connection_id=${connections[7]}&source_id=${sources[2]}`,
    "events",
    ({ connections, sources }) => `connection_id = '${connections[7]}' and source_id = '${sources[2]}'`
  ],
  [
    () => "/events?q=ext-77",
    "events",
    () => "request_id in (select id from requests where external_id like 'ext-77%')"
  ],
  [
    () => "/events?q=ext-77&status=SUCCESSFUL",
    "events",
    () => "state = 'SUCCESSFUL' and request_id in (select id from requests where external_id like 'ext-77%')"
  ],
  [
    ({ destinations }) => `/events?q=${destinations[4]}`,
    "events",
    ({ destinations }) => `destination_id = '${destinations[4]}'`
  ],
  [() => "/events?batch_operation_id=bch_1&batch_operation_scope=related", "events", () => "false"],
  [() => "/attempts?", "attempts", () => "true"],
  [() => "/attempts?status=FAILED", "attempts", () => "status = 'FAILED'"],
  [() => "/attempts?q=bad_response", "attempts", () => "error_code = 'BAD_RESPONSE'"],
  [() => "/attempts?q=example.com", "attempts", () => "true"],
  [() => "/attempts?q=example.org", "attempts", () => "false"],
  [
    ({ destinations }) => `/attempts?destination_id=${destinations[6]}&destination_id=${destinations[7]}`,
    "attempts",
    ({ destinations }) => `destination_id in ('${destinations[6]}', '${destinations[7]}')`
  ]
]

layer(Histories.layer, { excludeTestServices: true })("Lists of records", (it) => {
  for (const [path, table, condition] of lists) {
    it.effect(
      `List of ${table} returns exactly the rows where ${condition({ sources: ["s0", "s1", "s2", "s3"], destinations: [], connections: [] })}`,
      () =>
        Effect.gen(function* () {
          const { a } = yield* Histories
          const expected = yield* stored(table, condition(a))
          const whole = path(a)
          const { rows, last } = yield* pages(`${whole}&limit=33`)
          expect(ids(rows)).toEqual(expected)
          for (const row of rows) expect(row["team_id"]).toBe(teams.a.id)
          if (table === "attempts") return
          const counted = yield* call("GET", whole.replace("?", "/count?"))
          expect(counted).toMatchObject({
            status: 200,
            body: { count: expected.length, total: expected.length, total_exact: true }
          })
          expect(last.body.applied_range).toEqual({ from: expect.any(String), to: expect.any(String) })
        })
    )
  }

  it.effect("Pages of requests have no gap and no repeat while rows are inserted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const before = yield* stored("requests", "true")
      const insert = Effect.suspend(() => {
        const id = newId(prefixes.request, Date.now())
        return sql`insert into requests select (jsonb_populate_record(r, jsonb_build_object('id', ${id}::text))).*
          from requests r where id = ${before[0]!}`
      })
      const { rows } = yield* pages("/requests?limit=50", insert.pipe(Effect.asVoid))
      const seen = ids(rows).filter((id) => before.includes(id))
      expect(seen).toEqual(before)
      expect(new Set(ids(rows)).size).toBe(rows.length)
      yield* sql`delete from requests where not (id = any(${[...before]})) and team_id = ${teams.a.id}`
    })
  )

  it.effect("Attempts can be paged in both directions", () =>
    Effect.gen(function* () {
      const all = yield* stored("attempts", "true")
      const first = yield* call("GET", "/attempts?limit=100")
      expect(first.body.pagination).toMatchObject({ order_by: "created_at", dir: "desc", limit: 100, prev: null })
      const second = yield* call("GET", `/attempts?limit=100&next=${first.body.pagination.next}`)
      expect(ids(second.body.models)).toEqual(all.slice(100, 200))
      const back = yield* call("GET", `/attempts?limit=100&prev=${second.body.pagination.prev}`)
      expect(ids(back.body.models)).toEqual(all.slice(0, 100))
      expect(back.body.pagination.prev).toBeNull()
      const again = yield* call("GET", `/attempts?limit=100&next=${back.body.pagination.next}`)
      expect(ids(again.body.models)).toEqual(all.slice(100, 200))
      const oldest = yield* pages("/attempts?limit=255&dir=ASC")
      expect(ids(oldest.rows)).toEqual(all.toReversed())
      const wrongWay = yield* call("GET", `/attempts?limit=100&prev=${first.body.pagination.next}`)
      expect(wrongWay).toMatchObject({ status: 400, body: { code: "INVALID_CURSOR" } })
    })
  )

  it.effect("Limit above the maximum of a list is lowered to the maximum", () =>
    Effect.gen(function* () {
      expect((yield* call("GET", "/requests?limit=1000")).body).toMatchObject({
        limit: 100,
        count: 100,
        pagination: { limit: 100 }
      })
      expect((yield* call("GET", "/attempts?limit=1000")).body).toMatchObject({
        count: 255,
        pagination: { limit: 255 }
      })
      expect((yield* call("GET", "/sources?limit=1000")).body).toMatchObject({ pagination: { limit: 255 } })
    })
  )

  it.effect("Cursor is valid only for its own list, filters and team", () =>
    Effect.gen(function* () {
      const { body } = yield* call("GET", "/requests?limit=10&status=accepted")
      const invalid = { status: 400, body: { code: "INVALID_CURSOR" } }
      expect(yield* call("GET", `/requests?limit=10&status=rejected&cursor=${body.next_cursor}`)).toMatchObject(invalid)
      expect(yield* call("GET", `/events?limit=10&cursor=${body.next_cursor}`)).toMatchObject(invalid)
      expect(
        yield* call("GET", `/requests?limit=10&status=accepted&cursor=${body.next_cursor}`, { key: teams.b.key })
      ).toMatchObject(invalid)
      expect((yield* call("GET", `/requests?limit=20&status=accepted&next=${body.next_cursor}`)).body.count).toBe(20)
    })
  )

  it.effect("Time range of the first page applies to the next pages", () =>
    Effect.gen(function* () {
      const { body } = yield* call("GET", "/events?limit=10&from=now-90m")
      const more = yield* call("GET", `/events?limit=10&from=now-90m&cursor=${body.next_cursor}`)
      expect(more.body.applied_range).toEqual(body.applied_range)
    })
  )

  it.effect("Requests, events and attempts show their data, summaries, details and traces", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { models } = (yield* call("GET", "/requests?limit=100&include=data,event_summary")).body
      const attempts = yield* sql<{ request_id: string }>`select request_id from attempts`
      const attempted = new Set(attempts.map(({ request_id }) => request_id))
      const request = models.find(
        (row: { id: string; status: string; events_count: number }) =>
          row.status === "accepted" && row.events_count === 1 && attempted.has(row.id)
      )
      expect(request).toMatchObject({
        data: {
          method: "POST",
          path: "/orders",
          body: { n: expect.any(Number) },
          encoding: "json",
          content_type: "application/json",
          is_large_payload: false
        },
        event_summary: { total: 1 }
      })
      expect(request.data.parsed_query).toEqual({ n: String(request.data.body.n) })
      expect(models.find((row: { status: string }) => row.status === "rejected").event_summary).toEqual({ total: 0 })

      const detail = (yield* call("GET", `/requests/${request.id}`)).body
      expect(detail).toMatchObject({ id: request.id, data: request.data, proxy_exchange: null })
      const trace = (yield* call("GET", `/requests/${request.id}/trace`)).body
      expect(trace.counts).toMatchObject({ events: 1, ignored_events: 0 })
      expect(trace.request.data).toEqual(request.data)
      expect(trace.timeline.map((item: { kind: string }) => item.kind)).toEqual([
        "request",
        "event",
        ...trace.attempts.map(() => "attempt")
      ])
      expect(trace.timeline[0]).toMatchObject({ id: "tl_1", label: "Request accepted", request_id: request.id })
      const [ofEvent] = trace.events
      expect(trace.timeline[1]).toMatchObject({
        event_id: ofEvent.id,
        status: ofEvent.status,
        connection_id: ofEvent.connection_id,
        destination_id: ofEvent.destination_id
      })

      const [event] = (yield* call("GET", `/requests/${request.id}/events`)).body.models
      expect(event).toMatchObject({ request_id: request.id, webhook_id: event.connection_id })
      expect((yield* call("GET", `/events/${event.id}`)).body).toMatchObject({
        id: event.id,
        data: { request: { body: request.data.body } }
      })
      const [attempt] = (yield* call("GET", `/attempts?event_id=${event.id}`)).body.models
      expect(attempt).toMatchObject({
        event_id: event.id,
        body: expect.stringMatching(/^answer /),
        body_encoding: "text",
        response_headers: { "content-type": "text/plain" }
      })
      for (const query of ["", `?request_id=${request.id}`, "?request_id=req_wrong"]) {
        expect((yield* call("GET", `/attempts/${attempt.id}${query}`)).body).toEqual(attempt)
      }
      const ofRequest = (yield* call("GET", `/attempts?request_id=${request.id}`)).body.models
      expect(ofRequest).toContainEqual(attempt)
      const last = trace.attempts.length - 1
      expect(trace.timeline[2 + last]).toMatchObject({
        attempt_id: trace.attempts[last].id,
        event_id: event.id,
        status: trace.attempts[last].status
      })
    })
  )

  it.effect("Ignored event shows its cause", () =>
    Effect.gen(function* () {
      const [id] = yield* stored("ignored_events", "true")
      const request = `req_${id!.slice(4)}`
      const { body } = yield* call("GET", `/requests/${request}/ignored_events`)
      expect(body).toMatchObject({
        pagination: { limit: 100 },
        count: 1,
        models: [
          { id, request_id: request, cause: "FILTERED", meta: ["body"], webhook_id: expect.stringMatching(/^web_/) }
        ]
      })
      expect((yield* call("GET", `/requests/${request}/ignored_events?webhook_id=web_other`)).body.count).toBe(0)
      expect((yield* call("GET", `/requests/${request}/trace`)).body.timeline[1]).toMatchObject({
        kind: "ignored_event",
        ignored_event_id: id,
        connection_id: body.models[0].connection_id,
        status: "FILTERED"
      })
    })
  )

  it.effect("Status of waiting events follows the state of their connection", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { a } = yield* Histories
      const connection = a.connections[5]!
      const waiting = yield* stored("events", `connection_id = '${connection}' and state = 'PENDING'`)
      expect(waiting.length).toBeGreaterThan(5)
      const list = (status: string) =>
        Effect.map(call("GET", `/events?status=${status}&connection_id=${connection}&limit=100`), ({ body }) =>
          ids(body.models)
        )
      expect(yield* list("QUEUED")).toEqual(waiting)
      yield* sql`update connections set paused_at = now() where id = ${connection}`
      expect(yield* list("HOLD")).toEqual(waiting)
      expect(yield* list("QUEUED")).toEqual([])
      yield* sql`update connections set paused_at = null where id = ${connection}`
      yield* sql`update events set due_at = now() + interval '1 hour' where id = ${waiting[0]!}`
      expect(yield* list("SCHEDULED")).toEqual([waiting[0]])
      const [scheduled] = (yield* call("GET", `/events?status=SCHEDULED`)).body.models
      expect(Date.parse(scheduled.next_attempt_at)).toBeGreaterThan(Date.now())
      yield* sql`update connections set disabled_at = now(), cancel_before = now() where id = ${connection}`
      expect(yield* list("QUEUED,SCHEDULED,HOLD")).toEqual([])
      expect(yield* list("CANCELLED")).toEqual(expect.arrayContaining([...waiting]))
      expect((yield* call("GET", `/events/${waiting[0]}`)).body).toMatchObject({
        status: "CANCELLED",
        next_attempt_at: null
      })
      yield* sql`update connections set disabled_at = null, cancel_before = null where id = ${connection}`
      yield* sql`update events set due_at = created_at where id = ${waiting[0]!}`
    })
  )

  it.effect("Latest input of a connection is the last accepted request of its source", () =>
    Effect.gen(function* () {
      const { a } = yield* Histories
      const [latest] = yield* stored("requests", `source_id = '${a.sources[1]}' and status = 'accepted'`)
      expect((yield* call("GET", `/connections/${a.connections[1]}/latest-input`)).body).toMatchObject({
        connection_id: a.connections[1],
        latest_input: { source_id: a.sources[1], request_id: latest, input: { method: "POST", path: "/orders" } }
      })
    })
  )

  it.effect("Resources are listed by id, order and state", () =>
    Effect.gen(function* () {
      const { a } = yield* Histories
      const { body } = yield* call(
        "GET",
        `/sources?id=${a.sources[0]},${a.sources[1]}&ids=${a.sources[2]}&order_by=name&dir=asc`
      )
      expect(body).toMatchObject({ pagination: { order_by: "name", dir: "asc", limit: 100 }, count: 3 })
      expect(ids(body.models)).toEqual(a.sources.slice(0, 3).toSorted())
      expect((yield* call("GET", `/sources?name=${a.sources[4]}`)).body.count).toBe(1)
      expect((yield* call("GET", "/sources?type=STRIPE")).body.count).toBe(0)
      expect((yield* call("GET", `/connections?source_id=${a.sources[0]}&paused=false`)).body.count).toBe(4)
      expect((yield* call("GET", `/connections?destination_id=${a.destinations[0]}&paused=true`)).body.count).toBe(0)
      const { models } = (yield* call("GET", "/destinations?limit=1")).body
      const attempts = yield* stored("attempts", `destination_id = '${models[0].id}'`)
      expect(attempts.length).toBeGreaterThan(0)
      expect(models[0]).toMatchObject({ attempts_24h_count: attempts.length, attempts_24h_bins: expect.any(Array) })
      expect(models[0].attempts_24h_bins.reduce((sum: number, bin: number) => sum + bin)).toBe(attempts.length)
    })
  )

  it.effect("Routes of records find nothing of another team", () =>
    Effect.gen(function* () {
      const { b } = yield* Histories
      const [request] = yield* stored("requests", "status = 'accepted'", teams.b.id)
      const [event] = yield* stored("events", "state = 'FAILED'", teams.b.id)
      const [attempt] = yield* stored("attempts", "true", teams.b.id)
      const one = [
        ["sources", b.sources[0]!, ["disable", "enable"]],
        ["destinations", b.destinations[0]!, ["disable", "enable"]],
        ["connections", b.connections[0]!, ["disable", "enable", "pause", "unpause"]]
      ] as const
      const routes: Array<readonly [string, string]> = [
        ["GET", `/connections/${b.connections[0]}/latest-input`],
        ["GET", `/requests/${request}`],
        ["GET", `/requests/${request}/trace`],
        ["GET", `/requests/${request}/events`],
        ["GET", `/requests/${request}/ignored_events`],
        ["GET", `/events/${event}`],
        ["POST", `/events/${event}/retry`],
        ["GET", `/attempts/${attempt}`],
        ["GET", `/attempts/${attempt}?request_id=req_${attempt!.slice(4)}`]
      ]
      for (const [kind, id, actions] of one) {
        routes.push(
          ["GET", `/${kind}/${id}`],
          ["PATCH", `/${kind}/${id}`],
          ["PUT", `/${kind}/${id}`],
          ["DELETE", `/${kind}/${id}`]
        )
        for (const action of actions)
          routes.push(["PUT", `/${kind}/${id}/${action}`], ["POST", `/${kind}/${id}/${action}`])
      }
      for (const [method, path] of routes) {
        const written = path.startsWith("/destinations")
          ? { name: "stolen", config: { url: "https://example.com/" } }
          : { name: "stolen" }
        // A switch takes no body.
        const isWrite = (method === "PATCH" || method === "PUT") && !/\/(?:disable|enable|pause|unpause)$/.test(path)
        const body = isWrite ? written : undefined
        const answer = yield* call(method, path, body === undefined ? {} : { body })
        expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 404, "NOT_FOUND"])
      }
      for (const path of [
        `/sources?id=${b.sources[0]}`,
        `/destinations?id=${b.destinations[0]}`,
        `/connections?id=${b.connections[0]}`,
        `/requests?q=${request}`,
        `/requests?source_id=${b.sources[0]}`,
        `/requests?connection_id=${b.connections[1]}`,
        `/events?q=${event}`,
        `/events?q=${request}`,
        `/events?destination_id=${b.destinations[2]}`,
        `/events?destination_id=${b.destinations[2]}&status=FAILED`,
        `/attempts?event_id=evt_${attempt!.slice(4)}`,
        `/attempts?request_id=req_${attempt!.slice(4)}`,
        `/attempts?destination_id=${b.destinations[2]}`
      ]) {
        const answer = yield* call("GET", path)
        expect([path, answer.status, answer.body.count]).toEqual([path, 200, 0])
      }
      const untouched = yield* call("GET", `/sources/${b.sources[0]}`, { key: teams.b.key })
      expect(untouched.body).toMatchObject({ name: b.sources[0], disabled_at: null })
    })
  )
})
