import { Schema } from "effect"

const Headers = Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)]))

/** The messages of the gateway over a tunnel: it is open, a delivery, and it is still connected. */
export const TunnelFrame = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    cli_id: Schema.String.annotate({ description: "The session. Events have it as `cli_id`" }),
    destination_id: Schema.String,
    heartbeat_seconds: Schema.Int.annotate({
      description: "Maximum seconds between two pings of the client"
    }),
    max_in_flight: Schema.Int.annotate({ description: "Maximum deliveries without an answer" })
  }),
  Schema.Struct({
    type: Schema.Literal("delivery"),
    job_id: Schema.String.annotate({
      description: "The id for the answer. It stays the same if the attempt is sent again"
    }),
    timeout_ms: Schema.Int.annotate({ description: "Milliseconds within which the result must arrive" }),
    request: Schema.Struct({
      team_id: Schema.String,
      source_id: Schema.String,
      connection_id: Schema.String,
      destination_id: Schema.String,
      request_id: Schema.String,
      event_id: Schema.String,
      attempt_number: Schema.Int,
      local_url: Schema.NullOr(Schema.String).annotate({
        description: "The URL that the client sent when it connected"
      }),
      method: Schema.String,
      path: Schema.String.annotate({ description: "The path with its query. Append it to the local URL" }),
      headers: Headers,
      body: Schema.optionalKey(Schema.String),
      body_base64: Schema.optionalKey(Schema.String).annotate({
        description: "The body in base64, if it is not text or is large"
      })
    })
  }),
  Schema.Struct({ type: Schema.Literal("pong") })
]).annotate({ identifier: "TunnelFrame" })

export type TunnelFrame = typeof TunnelFrame.Type
