import { Schema } from "effect"
import { Values } from "./Message.ts"

const ofAnswer = "null: there was no response"

/** The result of one test delivery. */
export const DestinationTest = Schema.Struct({
  successful: Schema.Boolean,
  error_code: Schema.NullOr(Schema.String).annotate({
    description: "The code that an attempt with this result has; null: it was successful"
  }),
  error_message: Schema.NullOr(Schema.String).annotate({ description: "Why it failed; null: it was successful" }),
  response_status: Schema.NullOr(Schema.Int).annotate({ description: `The status of the response; ${ofAnswer}` }),
  response_headers: Schema.NullOr(Values),
  body: Schema.NullOr(Schema.String).annotate({
    description: `The response's body, at most 64 KiB, without the credentials that were sent; ${ofAnswer}, or no body`
  }),
  body_encoding: Schema.Literals(["text", "base64"]),
  body_truncated: Schema.Boolean.annotate({ description: "Whether the response had more than `body`" }),
  requested_url: Schema.String.annotate({ description: "What was called, with its credentials masked" }),
  http_method: Schema.String,
  duration_ms: Schema.Int.annotate({ description: "Milliseconds from the beginning to the complete response" })
}).annotate({ identifier: "DestinationTest" })

export interface DestinationTest extends Schema.Schema.Type<typeof DestinationTest> {}
