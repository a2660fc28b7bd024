import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import type { ProxyExchange } from "@tidegate/model/ProxyExchange"
import { readCaptured } from "./AttemptRow.ts"
import { readHeaders } from "./Payload.ts"

interface ProxyExchangeRow {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly request_id: string
  readonly target_url: string
  readonly http_method: string
  readonly response_status: number | null
  readonly response_headers: string | null
  readonly response_body: Uint8Array | null
  readonly response_body_truncated: boolean
  readonly error_code: string | null
  readonly error_text: string | null
  readonly started_at: Date
  readonly responded_at: Date | null
  readonly response_latency: number | null
  readonly created_at: Date
}

/** The upstream's answer to a request. Null: the request was not passed on, or retention has removed the exchange. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string
): Effect.fn.Return<ProxyExchange | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<ProxyExchangeRow>`
    select * from proxy_exchanges where id = ${sibling(prefixes.proxyExchange, requestId)} and team_id = ${team}`
  if (row === undefined) return null
  const { body, encoding } = readCaptured(row.response_body)
  return {
    id: row.id,
    team_id: row.team_id,
    source_id: row.source_id,
    request_id: row.request_id,
    target_url: row.target_url,
    http_method: row.http_method,
    response_status: row.response_status,
    response_headers: row.response_headers === null ? null : readHeaders(row.response_headers),
    response_body: body,
    response_body_encoding: encoding,
    response_body_truncated: row.response_body_truncated,
    error_code: row.error_code,
    error_text: row.error_text,
    started_at: row.started_at.toISOString(),
    responded_at: row.responded_at?.toISOString() ?? null,
    response_latency: row.response_latency,
    created_at: row.created_at.toISOString(),
    // Rows never change.
    updated_at: row.created_at.toISOString()
  }
})
