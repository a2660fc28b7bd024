import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import type { LatestInput } from "@tidegate/model/LatestInput"
import type { Request } from "@tidegate/model/Request"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import { mapped } from "@tidegate/runtime/Resumable"
import { byIds as eventsByIds } from "./EventReads.ts"
import { cut, listedBytes } from "./PageSize.ts"
import { envelope, resolvePage, type WindowedPage } from "./Paging.ts"
import * as ProxyExchangeReads from "./ProxyExchangeReads.ts"
import { eventsOfRequests, likePrefix, requestsByExternalId, requestsOfConnections } from "./Relations.ts"
import { requestPayloads } from "./RequestPayloads.ts"
import { anyBody, listedBody, type RequestRow, requestTable, toRequest } from "./RequestRow.ts"
import { conditions, type Covered, isOfRejected, type RequestFilter } from "./RequestConditions.ts"
import { countRequests } from "./RequestTally.ts"
import { countAll } from "./Tally.ts"
import { type Drive, pick, scan, type Scanned, toPage } from "./Scan.ts"
import { appliedRange, idRange, type IdRange, parseWindow, type WindowInput } from "./Window.ts"

export type { RequestFilter } from "./RequestConditions.ts"

export interface RequestIncludes {
  readonly data: boolean
  readonly eventSummary: boolean
}

/** There is one database, so every answer is complete. */
const whole = { partial: false, unavailable_shard_count: 0 }

const driveOf = (
  sql: SqlClient.SqlClient,
  team: string,
  filter: RequestFilter
): { readonly drive: Drive; readonly covers: Covered | undefined } => {
  const { isRetry, operation, retryKind, sources } = filter
  if (operation !== undefined)
    return { drive: { column: "retry_operation_id", values: [operation] }, covers: "operation" }
  const drive = { column: "team_id", values: [team] }
  // There are few retries, and an index has only them.
  if (isRetry === true || retryKind !== undefined) {
    return { drive: { ...drive, condition: sql.literal("r.retry_kind is not null") }, covers: "retries" }
  }
  if (sources.length > 0) return { drive: { column: "source_id", values: sources }, covers: "sources" }
  return isOfRejected(filter)
    ? { drive: { ...drive, condition: sql.literal("r.status = 'rejected'") }, covers: "status" }
    : { drive, covers: undefined }
}

/** Gathers ids for conditions that are not on a request's own row. Null: the list has to be read instead. */
const gather = Effect.fnUntraced(function* (team: string, filter: RequestFilter, range: IdRange, limit: number) {
  const { connections, search } = filter
  const routed = connections.length === 0 ? null : yield* requestsOfConnections(team, connections, range, limit)
  const byId = search?.startsWith(prefixes.request) === true
  const named = search === undefined || byId ? null : yield* requestsByExternalId(team, search, range)
  return { routed, byId, named, tooMany: search !== undefined && !byId && named === null }
})

/** A page of requests, newest first. */
export const list = Effect.fnUntraced(function* (
  team: string,
  filter: RequestFilter,
  request: WindowedPage,
  include: RequestIncludes
) {
  const at = yield* Effect.fromResult(resolvePage(request, yield* Clock.currentTimeMillis))
  const { lower, upper } = idRange(prefixes.request, at.window)
  let page = yield* pageOf(team, filter, { lower, upper: at.position?.id ?? upper }, request.limit)
  // None of the gathered requests may meet the rest of the filter.
  while (page.rows.length === 0 && page.next !== null) {
    page = yield* pageOf(team, filter, { lower, upper: page.next }, request.limit)
  }
  if (include.data) page = cut(page, ({ body_size }) => listedBytes(body_size))
  const models = yield* show(team, page.rows, include)
  return { ...envelope(request, at, page, models), ...whole }
})

/** The newest requests in the range, from one gathered set. */
const pageOf = Effect.fnUntraced(function* (team: string, filter: RequestFilter, range: IdRange, limit: number) {
  const sql = yield* SqlClient.SqlClient
  const { byId, named, routed, tooMany } = yield* gather(team, filter, range, limit)
  const { search } = filter
  const bounds = [sql`r.id >= ${range.lower}`, sql`r.id < ${range.upper}`]
  if (byId) bounds.push(sql`r.id >= ${search}`, sql`r.id < ${`${search}~`}`)
  const external = tooMany ? [sql`r.external_id like ${likePrefix(search ?? "")}`] : []
  const all = conditions(sql, filter)
  const options = { team, table: requestTable(sql), bounds, dir: "desc" as const, limit }

  const part: Scanned<RequestRow> =
    routed !== null || named !== null
      ? yield* pick<RequestRow>({
          ...options,
          ids: routed === null ? (named ?? []) : named === null ? routed.ids : both(routed.ids, named),
          residual: [...all.map(([, condition]) => condition), ...external]
        })
      : yield* Effect.suspend(() => {
          const { covers, drive } = driveOf(sql, team, filter)
          const residual = all.flatMap(([name, condition]) => (name !== null && name === covers ? [] : [condition]))
          return scan<RequestRow>({ ...options, drive, residual: [...residual, ...external] })
        })
  return toPage([{ rows: part.rows, examinedTo: routed?.examinedTo ?? part.examinedTo }], "desc", limit)
})

const both = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => {
  const other = new Set(b)
  return a.filter((id) => other.has(id))
}

/** Converts rows to records, with the requested extra data. */
const show = Effect.fnUntraced(function* (
  team: string,
  rows: ReadonlyArray<RequestRow>,
  include: RequestIncludes
): Effect.fn.Return<ReadonlyArray<Request>, SqlError.SqlError, SqlClient.SqlClient> {
  const ids = rows.map(({ id }) => id)
  const data = include.data ? yield* requestPayloads(team, ids, listedBody) : null
  const summaries = include.eventSummary ? yield* summarize(team, ids) : null
  return yield* inReportSteps(
    mapped(rows, (row) =>
      toRequest(row, {
        ...(data === null ? {} : { data: data.get(row.id) ?? null }),
        ...(summaries === null ? {} : { event_summary: summaries.get(row.id) ?? { total: 0 } })
      })
    )
  )
})

/** The largest number of events that a page of requests summarizes. */
const summarizeAtMost = 20_000

/** How many events of each request have which status. */
const summarize = Effect.fnUntraced(function* (team: string, requestIds: ReadonlyArray<string>) {
  const events = yield* eventsOfRequests(team, requestIds, summarizeAtMost)
  const rows = yield* eventsByIds(
    team,
    events.map(({ id }) => id),
    [],
    summarizeAtMost
  )
  const summaries = new Map<string, { total: number; [status: string]: number }>()
  for (const { request_id, status } of rows) {
    const summary: { total: number; [status: string]: number } = summaries.get(request_id) ?? { total: 0 }
    summary.total++
    summary[status] = (summary[status] ?? 0) + 1
    summaries.set(request_id, summary)
  }
  return summaries
})

/** How many requests of the window meet the filter. */
export const count = Effect.fnUntraced(function* (team: string, filter: RequestFilter, input: WindowInput) {
  const window = yield* Effect.fromResult(parseWindow(input, yield* Clock.currentTimeMillis))
  const stretch = { from: window.from, to: window.to + 1 }
  const { exact, total } = yield* countAll((atMost) => countRequests(team, filter, stretch, atMost))
  return { total, count: total, total_exact: exact, applied_range: appliedRange(window), ...whole }
})

const rowOf = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<RequestRow, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<RequestRow>`
    select ${requestTable(sql).columns} from requests r where r.id = ${id} and r.team_id = ${team}`
  return row ?? (yield* notFound("request", id))
})

/** Fails unless the team has that request. */
export const check = (team: string, id: string) => Effect.asVoid(rowOf(team, id))

const payloadOf = (team: string, id: string) =>
  Effect.map(requestPayloads(team, [id], anyBody), (payloads) => payloads.get(id) ?? null)

/** One request with its payload and, for a proxy source, the upstream's answer. */
export const detail = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Request, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const row = yield* rowOf(team, id)
  return toRequest(row, {
    data: yield* payloadOf(team, id),
    proxy_exchange: yield* ProxyExchangeReads.ofRequest(team, id)
  })
})

/** The decisions about a request, without its content. */
export const verdict = (
  team: string,
  id: string
): Effect.Effect<
  Pick<Request, "status" | "verified" | "rejection_cause">,
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> => Effect.map(rowOf(team, id), (row) => toRequest(row))

/** The latest request that a source accepted, among its last thousand. */
export const latestInput = Effect.fnUntraced(function* (
  team: string,
  sourceId: string
): Effect.fn.Return<LatestInput | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<RequestRow>`
    select ${requestTable(sql).columns} from (
      select * from requests r where r.source_id = ${sourceId} and r.team_id = ${team} order by r.id desc limit 1000
    ) r where r.status = 'accepted' order by r.id desc limit 1`
  if (row === undefined) return null
  const request = toRequest(row)
  const data = yield* payloadOf(team, request.id)
  return {
    source_id: sourceId,
    request_id: request.id,
    original_event_data_id: request.original_event_data_id,
    created_at: request.created_at,
    payload_key: request.original_event_data_id,
    input:
      data === null
        ? null
        : { method: data.method, path: data.path, query: data.parsed_query, headers: data.headers, body: data.body }
  }
})

interface Body {
  readonly size: number
  /** Null when it was not requested. */
  readonly bytes: Uint8Array | null
}

const stored = Effect.fnUntraced(function* (
  team: string,
  id: string,
  part: "size" | "bytes"
): Effect.fn.Return<Body, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Body & { readonly kept: boolean }>`
    select r.body is not null as kept, r.body_size as size, ${sql.literal(part === "bytes" ? "r.body" : "null::bytea")} as bytes
    from requests r where r.id = ${id} and r.team_id = ${team}`
  if (row === undefined) return yield* notFound("request", id)
  // Retention has removed it, or it was too large to be stored.
  return row.kept ? row : yield* notFound("request body", id)
})

/** The body of a request byte for byte as received; ingress has limited its size. */
export const requestBody = (team: string, id: string) =>
  Effect.map(stored(team, id, "bytes"), ({ bytes }) => bytes ?? new Uint8Array())

/** The size of that body in bytes, without reading it. */
export const requestBodySize = (team: string, id: string) => Effect.map(stored(team, id, "size"), ({ size }) => size)
