import { isUtf8 } from "node:buffer"
import type { SqlClient } from "effect/sql"
import type { Attempt, AttemptStatus, AttemptTrigger } from "@tidegate/model/Attempt"
import { readHeaders } from "./Payload.ts"
import type { Table } from "./Scan.ts"

/** A row of `attempts`. */
export interface AttemptRow {
  readonly id: string
  readonly team_id: string
  readonly event_id: string
  readonly request_id: string
  readonly connection_id: string
  readonly source_id: string
  readonly destination_id: string
  readonly attempt_number: number
  readonly trigger: AttemptTrigger
  readonly status: AttemptStatus
  readonly response_status: number | null
  readonly error_code: string | null
  readonly body: Uint8Array | null
  readonly response_headers: string | null
  readonly requested_url: string
  readonly http_method: string
  readonly bulk_retry_id: string | null
  readonly successful_at: Date | null
  readonly delivered_at: Date
  readonly responded_at: Date | null
  readonly delivery_latency: number
  readonly response_latency: number | null
  readonly created_at: Date
}

/** A row of a list: its body is read only when the page has capacity for it. */
export interface ListedAttemptRow extends AttemptRow {
  readonly body: null
  readonly bytes: number
}

/** The columns of a `ListedAttemptRow`. */
export const listedAttempt = `a.id, a.team_id, a.event_id, a.request_id, a.connection_id, a.source_id, a.destination_id, a.attempt_number,
  a.trigger, a.status, a.response_status, a.error_code, null as body, a.response_headers, a.requested_url, a.http_method, a.bulk_retry_id,
  a.successful_at, a.delivered_at, a.responded_at, a.delivery_latency, a.response_latency, a.created_at,
  coalesce(octet_length(a.body), 0) + coalesce(octet_length(a.response_headers), 0) as bytes`

export const attemptTable = (sql: SqlClient.SqlClient): Table => ({
  name: "attempts",
  alias: "a",
  columns: sql.literal(listedAttempt),
  joins: ""
})

/** The body of a stored answer: text when it is UTF-8, else base64. */
export const readCaptured = (
  body: Uint8Array | null
): { readonly body: string | null; readonly encoding: "text" | "base64" } => {
  if (body === null) return { body, encoding: "text" }
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const encoding = isUtf8(bytes) ? "utf8" : "base64"
  return { body: bytes.toString(encoding), encoding: encoding === "utf8" ? "text" : encoding }
}

export const toAttempt = (row: AttemptRow): Attempt => {
  const { body, encoding } = readCaptured(row.body)
  return {
    id: row.id,
    team_id: row.team_id,
    event_id: row.event_id,
    request_id: row.request_id,
    connection_id: row.connection_id,
    webhook_id: row.connection_id,
    source_id: row.source_id,
    destination_id: row.destination_id,
    attempt_number: row.attempt_number,
    trigger: row.trigger,
    status: row.status,
    response_status: row.response_status,
    error_code: row.error_code,
    body,
    body_encoding: encoding,
    response_headers: row.response_headers === null ? null : readHeaders(row.response_headers),
    requested_url: row.requested_url,
    http_method: row.http_method,
    bulk_retry_id: row.bulk_retry_id,
    successful_at: row.successful_at?.toISOString() ?? null,
    delivered_at: row.delivered_at.toISOString(),
    responded_at: row.responded_at?.toISOString() ?? null,
    delivery_latency: row.delivery_latency,
    response_latency: row.response_latency,
    created_at: row.created_at.toISOString(),
    // Rows never change.
    updated_at: row.created_at.toISOString()
  }
}
