import { Schema } from "effect"
import { ProxyExchange } from "./ProxyExchange.ts"
import { storedPayload } from "./StoredPayload.ts"
import { Timestamp } from "./Timestamp.ts"
import { Values } from "./Message.ts"

export const RequestStatus = Schema.Literals(["accepted", "rejected"])
export type RequestStatus = typeof RequestStatus.Type

export const RetryKind = Schema.Literals(["single", "bulk"])

/** The form of `body`: a JSON value, text, or base64 (bytes that are not UTF-8). */
export const BodyEncoding = Schema.Literals(["json", "text", "base64"])
export type BodyEncoding = typeof BodyEncoding.Type

/**
 * The received request. `is_large_payload`: `body` is too large for this place, and is null or its beginning as text; an empty
 * body is the empty text. `reason` says why a JSON body is shown as text; rules see it as text too.
 */
export const RequestData = Schema.Struct({
  method: Schema.String,
  path: Schema.String,
  query: Schema.String,
  parsed_query: Values,
  headers: Values,
  body: Schema.Json,
  content_type: Schema.NullOr(Schema.String),
  size_bytes: Schema.Int.annotate({ description: "Bytes of the received body" }),
  is_large_payload: Schema.Boolean,
  encoding: BodyEncoding,
  reason: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "RequestData", ...storedPayload })

export interface RequestData extends Schema.Schema.Type<typeof RequestData> {}

/** How many of a request's events have each status; statuses without events are left out. */
export const EventSummary = Schema.StructWithRest(Schema.Struct({ total: Schema.Int }), [
  Schema.Record(Schema.String, Schema.Int)
])

/**
 * An inbound delivery as the API shows it. `data` is present when requested, and null when retention has removed the payload.
 * `proxy_exchange` is present in the detail, and null unless its source is a proxy.
 */
export const Request = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  source_id: Schema.String,
  status: RequestStatus,
  verified: Schema.Boolean,
  rejection_cause: Schema.NullOr(Schema.String),
  original_event_data_id: Schema.String,
  external_id: Schema.NullOr(Schema.String),
  events_count: Schema.Int,
  ignored_count: Schema.Int,
  cli_events_count: Schema.Int,
  is_retry: Schema.Boolean,
  retry_kind: Schema.NullOr(RetryKind),
  retry_parent_request_id: Schema.NullOr(Schema.String),
  retry_operation_id: Schema.NullOr(Schema.String),
  retried_at: Schema.NullOr(Timestamp),
  ingested_at: Timestamp,
  created_at: Timestamp,
  updated_at: Timestamp,
  data: Schema.optionalKey(Schema.NullOr(RequestData)),
  event_summary: Schema.optionalKey(EventSummary),
  proxy_exchange: Schema.optionalKey(Schema.NullOr(ProxyExchange))
}).annotate({ identifier: "Request" })

export interface Request extends Schema.Schema.Type<typeof Request> {}
