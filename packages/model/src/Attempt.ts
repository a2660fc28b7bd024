import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { Values } from "./Message.ts"

export const AttemptStatus = Schema.Literals(["SUCCESSFUL", "FAILED"])
export type AttemptStatus = typeof AttemptStatus.Type

export const AttemptTrigger = Schema.Literals(["INITIAL", "AUTOMATIC", "MANUAL", "BULK_RETRY", "UNPAUSE"])
export type AttemptTrigger = typeof AttemptTrigger.Type

/**
 * One finished attempt to deliver an event, as the API shows it. Latencies in milliseconds. `body` is the captured answer: text,
 * or base64 (`body_encoding`) when it is not UTF-8.
 */
export const Attempt = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  event_id: Schema.String,
  request_id: Schema.String,
  connection_id: Schema.String,
  webhook_id: Schema.String,
  source_id: Schema.String,
  destination_id: Schema.String,
  attempt_number: Schema.Int,
  trigger: AttemptTrigger,
  status: AttemptStatus,
  response_status: Schema.NullOr(Schema.Int),
  error_code: Schema.NullOr(Schema.String),
  body: Schema.NullOr(Schema.String),
  body_encoding: Schema.Literals(["text", "base64"]),
  response_headers: Schema.NullOr(Values),
  requested_url: Schema.String,
  http_method: Schema.String,
  bulk_retry_id: Schema.NullOr(Schema.String),
  successful_at: Schema.NullOr(Timestamp),
  delivered_at: Timestamp,
  responded_at: Schema.NullOr(Timestamp),
  delivery_latency: Schema.Int.annotate({ description: "Milliseconds spent preparing and sending" }),
  response_latency: Schema.NullOr(Schema.Int).annotate({
    description: "Milliseconds from the end of sending to the complete response. Null: there was no response"
  }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Attempt" })

export interface Attempt extends Schema.Schema.Type<typeof Attempt> {}
