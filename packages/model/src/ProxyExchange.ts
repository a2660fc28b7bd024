import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"
import { Values } from "./Message.ts"

/**
 * The answer of a proxy source's upstream to one request, as the API shows it. `response_latency` in milliseconds.
 * `response_body` is the captured part (`response_body_truncated`): text, or base64 (`response_body_encoding`) when it is not
 * UTF-8. An exchange without a response has an `error_code`, and null in all members of a response.
 */
export const ProxyExchange = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  source_id: Schema.String,
  request_id: Schema.String,
  target_url: Schema.String,
  http_method: Schema.String,
  response_status: Schema.NullOr(Schema.Int),
  response_headers: Schema.NullOr(Values),
  response_body: Schema.NullOr(Schema.String),
  response_body_encoding: Schema.Literals(["text", "base64"]),
  response_body_truncated: Schema.Boolean,
  error_code: Schema.NullOr(Schema.String),
  error_text: Schema.NullOr(Schema.String),
  started_at: Timestamp,
  responded_at: Schema.NullOr(Timestamp),
  response_latency: Schema.NullOr(Schema.Int).annotate({
    description: "Milliseconds from the call to the response. Null: there was no response"
  }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ProxyExchange" })

export interface ProxyExchange extends Schema.Schema.Type<typeof ProxyExchange> {}
