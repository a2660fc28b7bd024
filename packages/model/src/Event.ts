import { Schema } from "effect"
import { BodyEncoding, RetryKind } from "./Request.ts"
import { storedPayload } from "./StoredPayload.ts"
import { Timestamp } from "./Timestamp.ts"
import { Values } from "./Message.ts"

/** SCHEDULED waits for a time, QUEUED for its turn, HOLD for its paused connection; the other three are final. */
export const EventStatus = Schema.Literals(["SCHEDULED", "QUEUED", "HOLD", "SUCCESSFUL", "FAILED", "CANCELLED"])
export type EventStatus = typeof EventStatus.Type

/** Whether an event with that status is still to be delivered. */
export const isPending = (status: EventStatus): boolean =>
  status === "SCHEDULED" || status === "QUEUED" || status === "HOLD"

/** The payload to send, and the answer of the last attempt. */
export const EventData = Schema.Struct({
  request: Schema.Struct({
    method: Schema.String,
    url: Schema.NullOr(Schema.String),
    path: Schema.String,
    query: Schema.String,
    headers: Values,
    body: Schema.Json,
    encoding: BodyEncoding,
    is_large_payload: Schema.Boolean,
    reason: Schema.optionalKey(Schema.String)
  }),
  response: Schema.NullOr(
    Schema.Struct({
      status: Schema.NullOr(Schema.Int),
      headers: Schema.NullOr(Values),
      body: Schema.NullOr(Schema.String),
      encoding: Schema.Literals(["text", "base64"])
    })
  )
}).annotate({ identifier: "EventData", ...storedPayload })

export interface EventData extends Schema.Schema.Type<typeof EventData> {}

/**
 * An outbound delivery as the API shows it; `webhook_id` repeats `connection_id`. `next_attempt_at` is set exactly in SCHEDULED.
 * `resolved_at` is when a later retry of a failed or cancelled event succeeded, and `resolved_by_event_id` that retry; the status
 * stays. `created_at` orders lists and metrics: it is the time of the request, or of the retry. `stored_at` is later when slow
 * rules came between. `data` is present when requested, and null when retention has removed the payload.
 */
export const Event = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  request_id: Schema.String,
  connection_id: Schema.String,
  webhook_id: Schema.String,
  source_id: Schema.String,
  destination_id: Schema.String,
  cli_id: Schema.NullOr(Schema.String),
  event_data_id: Schema.String,
  status: EventStatus,
  rejection_cause: Schema.NullOr(Schema.String),
  failure_message: Schema.NullOr(Schema.String),
  ignored_reason: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  response_status: Schema.NullOr(Schema.Int),
  error_code: Schema.NullOr(Schema.String),
  last_attempt_at: Schema.NullOr(Timestamp),
  next_attempt_at: Schema.NullOr(Timestamp),
  successful_at: Schema.NullOr(Timestamp),
  is_retry: Schema.Boolean,
  retry_kind: Schema.NullOr(RetryKind),
  retry_parent_event_id: Schema.NullOr(Schema.String),
  retry_operation_id: Schema.NullOr(Schema.String),
  retried_at: Schema.NullOr(Timestamp),
  resolved_at: Schema.NullOr(Timestamp),
  resolved_by_event_id: Schema.NullOr(Schema.String),
  ingested_at: Timestamp,
  created_at: Timestamp,
  stored_at: Timestamp,
  updated_at: Timestamp,
  data: Schema.optionalKey(Schema.NullOr(EventData))
}).annotate({ identifier: "Event" })

export interface Event extends Schema.Schema.Type<typeof Event> {}
