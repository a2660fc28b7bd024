import { Schema } from "effect"

const Headers = Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)]))

/** The messages of the gateway over a tunnel: it is open, a delivery, and it is still connected. */
export const TunnelFrame = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    cli_id: Schema.String.annotate({ description: "The session, as `cli_id` of events has it" }),
    destination_id: Schema.String,
    heartbeat_seconds: Schema.Int.annotate({
      description: "Seconds between two pings, at most: send one at least that often"
    }),
    max_in_flight: Schema.Int.annotate({ description: "Deliveries that are not answered yet, at the most" })
  }),
  Schema.Struct({
    type: Schema.Literal("delivery"),
    job_id: Schema.String.annotate({
      description: "To be answered with; the same for the same attempt, however often it is sent"
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
      local_url: Schema.NullOr(Schema.String).annotate({ description: "What the client has said when it connected" }),
      method: Schema.String,
      path: Schema.String.annotate({ description: "With its query; to be appended to the local URL" }),
      headers: Headers,
      body: Schema.optionalKey(Schema.String),
      body_base64: Schema.optionalKey(Schema.String).annotate({
        description: "Instead of `body`, when that is no text or large"
      })
    })
  }),
  Schema.Struct({ type: Schema.Literal("pong") })
]).annotate({ identifier: "TunnelFrame" })

export type TunnelFrame = typeof TunnelFrame.Type
