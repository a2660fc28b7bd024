import type { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { parseQuery, type StoredHead } from "@tidegate/model/Message"
import type { Request, RequestData } from "@tidegate/model/Request"
import { shownHeaders } from "@tidegate/verification/PresentedPlaces"
import { headerOf, likelyEncoding, readBody, readHeaders, type ValueBudget, valueBudget } from "./Payload.ts"
import { payloadGone } from "../Tables.ts"
import type { Table } from "./Scan.ts"
import { timeOf } from "./Window.ts"

/** A row of `requests` without its payload. */
export interface RequestRow {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly status: "accepted" | "rejected"
  readonly verified: boolean
  readonly rejection_cause: string | null
  readonly external_id: string | null
  readonly events_count: number
  readonly ignored_count: number
  readonly cli_events_count: number
  readonly retry_kind: "single" | "bulk" | null
  readonly retry_parent_request_id: string | null
  readonly retry_operation_id: string | null
  readonly retried_at: Date | null
  readonly ingested_at: Date
  readonly created_at: Date
  readonly updated_at: Date
  readonly body_size: number
}

export const requestTable = (sql: SqlClient.SqlClient): Table => ({
  name: "requests",
  alias: "r",
  // A connection with a routing job counts as an event already.
  columns: sql`r.id, r.team_id, r.source_id, r.status, r.verified, r.rejection_cause, r.external_id,
    r.events_count - (select count(*)::int4 from pending_routes p where p.request_id = r.id and p.counted) as events_count,
    r.ignored_count, r.cli_events_count, r.retry_kind, r.retry_parent_request_id, r.retry_operation_id, r.retried_at,
    r.ingested_at, r.created_at, r.updated_at, r.body_size`,
  joins: ""
})

export const toRequest = (
  row: RequestRow,
  shown: Pick<Request, "data" | "event_summary" | "proxy_exchange"> = {}
): Request => ({
  id: row.id,
  team_id: row.team_id,
  source_id: row.source_id,
  status: row.status,
  verified: row.verified,
  rejection_cause: row.rejection_cause,
  original_event_data_id: sibling(prefixes.eventData, row.id),
  external_id: row.external_id,
  events_count: row.events_count,
  ignored_count: row.ignored_count,
  cli_events_count: row.cli_events_count,
  is_retry: row.retry_kind !== null,
  retry_kind: row.retry_kind,
  retry_parent_request_id: row.retry_parent_request_id,
  retry_operation_id: row.retry_operation_id,
  retried_at: row.retried_at?.toISOString() ?? null,
  ingested_at: row.ingested_at.toISOString(),
  created_at: timeOf(row),
  updated_at: row.updated_at.toISOString(),
  ...shown
})

/** The stored payload of a request. `kept`: there is a body, whether or not it was read. */
export interface PayloadRow extends StoredHead {
  readonly id: string
  readonly body: Uint8Array | null
  /** The beginning of a body that was not read. */
  readonly start: Uint8Array | null
  readonly body_size: number
  readonly kept: boolean
  readonly rejection_cause: string | null
}

/** The columns of a `PayloadRow` of `requests r`. Of bodies larger than `largest` bytes only the beginning is read. */
export const payloadColumns = (largest: number): string => `r.id, r.method, r.path, r.query, r.headers,
  case when r.body_size <= ${largest} then r.body end as body,
  case when r.body_size > ${largest} then substring(r.body for ${startBytes}) end as start,
  r.body_size, r.body is not null as kept, r.rejection_cause`

/** How many bytes of a body that is not shown are read to determine its encoding. */
export const startBytes = 1024

/** For records of one answer that may repeat payloads: bodies are left out once the limit of JSON values is reached. */
export const repeatedly = (): ((data: RequestData) => RequestData) => {
  const budget = valueBudget()
  const counts = new Map<RequestData, number>()
  return (data) => {
    const count = counts.get(data) ?? countValues(data.body)
    counts.set(data, count)
    budget.values -= count
    return budget.values >= 0 ? data : Object.assign({}, data, { body: null, is_large_payload: true })
  }
}

const countValues = (root: Schema.Json): number => {
  const open: Array<Schema.Json> = [root]
  let count = 0
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    count++
    if (typeof value === "object" && value !== null) for (const item of Object.values(value)) open.push(item)
  }
  return count
}

/** Lists show bodies up to this many bytes; a detail shows any. */
export const listedBody = 64 * 1024
export const anyBody = 2_147_483_647

/** The payload as it is shown; null when retention has removed it. `budget`: for all bodies of the same answer. */
export const toRequestData = (row: PayloadRow, budget?: ValueBudget): RequestData | null => {
  if (row.headers === payloadGone) return null
  const large = row.body === null && (row.kept || row.rejection_cause === "PAYLOAD_TOO_LARGE")
  if (row.body === null && !large) return null
  const headers = shownHeaders(readHeaders(row.headers))
  const content_type = headerOf(headers, "content-type")
  const query = row.query.startsWith("?") ? row.query.slice(1) : row.query
  const readable =
    row.body === null
      ? {
          body: null,
          encoding: row.start === null ? ("text" as const) : likelyEncoding(row.start, content_type),
          isPreview: true,
          reason: null
        }
      : readBody(row.body, content_type, budget)
  return {
    method: row.method,
    path: row.path,
    query,
    parsed_query: { ...parseQuery(query) },
    headers,
    body: readable.body,
    content_type,
    size_bytes: row.body_size,
    is_large_payload: readable.isPreview,
    encoding: readable.encoding,
    ...(readable.reason === null ? {} : { reason: readable.reason })
  }
}

/** The payloads of one answer, by the id of their row. A row whose payload is gone has none. */
export const payloadsOf = (rows: ReadonlyArray<PayloadRow>): Effect.Effect<ReadonlyMap<string, RequestData>> =>
  inReportSteps(payloads(rows))

function* payloads(rows: ReadonlyArray<PayloadRow>): Resumable<ReadonlyMap<string, RequestData>> {
  const found = new Map<string, RequestData>()
  const budget = valueBudget()
  for (const row of rows) {
    const data = toRequestData(row, budget)
    if (data !== null) found.set(row.id, data)
    yield
  }
  return found
}
