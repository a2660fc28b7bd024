/** The time of counts, series, summaries and lists over more and more records, and a check of their results. */
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Pool } from "undici"
import { type Ends, fill, operation } from "./Fill.ts"
import { atMost, type Outcome, type Plan, single, startProcess } from "./Comparison.ts"
import { GatewayError } from "./Gateway.ts"
import { makeRow, type Row } from "./Report.ts"

/** The sources, destinations and connections over which the records are spread. */
const sources = 5
const destinations = 10
const connections = 20
/** How often each query is executed. */
const times = 15
/** The median time (ms) that these queries may take, whatever is stored. */
const bound = 30
/** The most ids that a summary takes. */
const mostIds = 100
const bounded = new Set([
  "list events by search",
  "list requests by search, nothing found",
  "list failed events of a destination",
  "list events with their data",
  "events over ten minutes, by the second",
  `summary of ${mostIds} connections`
])

const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new GatewayError({ message: String(cause) }) })

/** The part of an answer that is read. */
interface Answer {
  readonly id: string
  readonly team_id: string
  readonly series: ReadonlyArray<{ readonly timestamp: string; readonly count: number }>
  readonly total: number
  readonly total_exact: boolean
}

const day = "from=now-24h&to=now"

const pathsOf = ({ connections, destinations, sources }: Ends): Readonly<Record<string, string>> => ({
  "list events": "events",
  "list failed events of a destination": `events?status=FAILED&destination_id=${destinations[0]}`,
  "list requests": "requests",
  "list events with their data": "events?include=data",
  "list events by search": "events?q=ext-4242",
  "list requests by search, nothing found": "requests?q=no-such-text",
  "list destinations, with 24 hours": "destinations",
  "count events": "events/count",
  "count failed events": "events/count?status=FAILED",
  "count waiting events": "events/count?status=HOLD,QUEUED",
  "count events of a source": `events/count?source_id=${sources[0]}`,
  "count events of a source to a destination": `events/count?source_id=${sources[0]}&destination_id=${destinations[0]}`,
  "count events by search": "events/count?q=ext-4242",
  "count requests": "requests/count",
  "count rejected requests of a source": `requests/count?status=rejected&source_id=${sources[0]}`,
  "count unverified requests": "requests/count?verified=false",
  "count retried requests": "requests/count?retry_kind=single",
  "count requests of a connection": `requests/count?connection_id=${connections[1]}`,
  "count events that an operation retried": `events/count?batch_operation_id=${operation}&batch_operation_scope=targets`,
  "list retried requests": "requests?retry_kind=single",
  "list events that an operation retried": `events?batch_operation_id=${operation}&batch_operation_scope=targets`,
  "list rejected and unverified requests by search": "requests?status=rejected&verified=false&q=ext-4",
  "events over a day, by default": `metrics/events?${day}`,
  "events over a day, by the minute": `metrics/events?${day}&granularity=1m`,
  "events over a day, of a destination by the hour": `metrics/events?${day}&granularity=1h&destination_id=${destinations[0]}`,
  "events over ten minutes, by the second": "metrics/events?from=now-10m&to=now&granularity=1s",
  "events over fifty minutes, by the second": "metrics/events?from=now-49m&to=now&granularity=1s",
  "events over two days, by the hour": "metrics/events?from=now-48h&to=now&granularity=1h",
  "events over thirty days, by the hour": "metrics/events?from=now-30d&to=now&granularity=1h",
  "requests over thirty days, by the hour": "metrics/requests?from=now-30d&to=now&granularity=1h",
  "requests over a day, by default": `metrics/requests?${day}`,
  "requests over ten minutes, by the second": "metrics/requests?from=now-10m&to=now&granularity=1s",
  "summary of all sources": `metrics/sources?id=${sources.join()}`,
  "summary of all destinations": `metrics/destinations?id=${destinations.join()}`,
  "summary of all connections": `metrics/connections?id=${connections.join()}`,
  [`summary of ${mostIds} connections`]: `metrics/connections?id=${Array.from({ length: mostIds }, (_, n) => connections[n % connections.length]).join()}`
})

const sizeName = (rows: number): string => (rows >= 1e6 ? `${rows / 1e6} million` : `${rows / 1e3} thousand`)

/** Measures each query with each number of records. */
export const queries = Effect.fnUntraced(function* (plan: Plan) {
  const rows: Array<Row> = []
  let least: Readonly<Record<string, ReadonlyArray<number>>> = {}
  for (const size of plan.settings.records) {
    const name = `queries_${size}`
    const database = yield* plan.bench.postgres.database(name)
    const gateway = yield* startProcess(plan, name, database, name)
    const connection = yield* PgConnection.make({ url: Redacted.make(database) })
    const second = yield* PgConnection.make({ url: Redacted.make(database) })
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pool(gateway.origin, { connections: 1 })),
      (pool) => Effect.promise(() => pool.destroy())
    )
    const call = (method: "GET" | "POST" | "PUT", path: string, body?: object) =>
      attempt(async () => {
        const answer = await pool.request({
          method,
          path: `/v1/${path}`,
          headers: { authorization: gateway.authorization, "content-type": "application/json" },
          body: body === undefined ? null : JSON.stringify(body)
        })
        const text = await answer.body.text()
        if (answer.statusCode !== 200)
          throw new Error(`${method} /v1/${path}: ${answer.statusCode} ${text.slice(0, 500)}`)
        return JSON.parse(text) as Answer
      })
    const made = (path: string, count: number, body: (n: number) => object) =>
      Effect.forEach(
        Array.from({ length: count }, (_, n) => n),
        (n) => call("POST", path, body(n))
      )
    const from = yield* made("sources", sources, (n) => ({ name: `s${n}`, type: "WEBHOOK" }))
    const to = yield* made("destinations", destinations, (n) => ({ name: `d${n}`, type: "MOCK_API", config: {} }))
    const between = yield* made("connections", connections, (n) => ({
      name: `c${n}`,
      source_id: from[n % sources]!.id,
      destination_id: to[n % destinations]!.id,
      rules: []
    }))
    yield* call("PUT", `connections/${between[0]!.id}/pause`)
    const ids = (all: ReadonlyArray<{ readonly id: string }>) => all.map(({ id }) => id)
    const ends: Ends = { team: from[0]!.team_id, sources: ids(from), destinations: ids(to), connections: ids(between) }

    const began = performance.now()
    yield* fill(connection, second, ends, size, Date.now())
    yield* plan.progress(`queries: ${sizeName(size)} requests in ${((performance.now() - began) / 1000).toFixed(0)} s`)
    yield* plan.bench.postgres.checkpoint

    const found: Record<string, Array<number>> = {}
    for (const [query, path] of Object.entries(pathsOf(ends))) {
      const timed = Effect.suspend(() => {
        const at = performance.now()
        return Effect.map(call("GET", path), () => performance.now() - at)
      })
      // A query that gets no answer has no time: it fails each bound, and the others are measured all the same.
      const took = yield* timed.pipe(
        Effect.andThen(Effect.replicateEffect(timed, times)),
        Effect.catch((error) =>
          Effect.as(
            plan.progress(error.message),
            Array.from({ length: times }, () => Number.NaN)
          )
        )
      )
      yield* plan.progress(`${query}: ${took.toSorted((a, b) => a - b)[times >> 1]!.toFixed(1)} ms`)
      found[query] = took
      rows.push(
        makeRow({
          scenario: `Queries over ${sizeName(size)} requests${least[query] === undefined ? "" : "; reference: the least of them"}`,
          measure: query,
          unit: "ms",
          ...(least[query] === undefined ? {} : { reference: least[query] }),
          gateway: took,
          ...(bounded.has(query) && { required: atMost("value", bound) })
        })
      )
    }
    if (Object.keys(least).length === 0) least = found

    // The returned numbers, compared with a count of the rows.
    const series = yield* call("GET", `metrics/events?${day}&granularity=1m`)
    const requests = yield* call("GET", `metrics/requests?${day}&granularity=1m`)
    const byMinute = (table: string) =>
      Effect.map(
        connection.queryValues(
          `select (extract(epoch from date_trunc('minute', created_at)) * 1000)::float8, count(*)::float8 from ${table} group by 1`
        ),
        (values) => new Map(values.map(([at, n]) => [Number(at), Number(n)]))
      )
    let wrong = 0
    for (const [told, there] of [
      [series, yield* byMinute("events")],
      [requests, yield* byMinute("requests")]
    ] as const) {
      for (const { count, timestamp } of told.series) if (count !== (there.get(Date.parse(timestamp)) ?? 0)) wrong++
    }
    const total = yield* call("GET", "events/count?from=now-30h")
    const [[all] = []] = yield* connection.queryValues("select count(*)::float8 from events")
    if (total.total !== Number(all) || !total.total_exact) wrong++
    rows.push(
      single(
        `Queries over ${sizeName(size)} requests`,
        "minutes and counts that differ from the rows",
        "",
        wrong,
        atMost("value", 0)
      )
    )
  }
  const none = { reference: [], gateway: [] }
  return { rows, measured: { offered: none, saturated: none } } satisfies Outcome
}, Effect.scoped)
