import { Schema } from "effect"
import { ids } from "./ExampleIds.ts"

/** What a sender would have got back for a test request. */
const Answer = Schema.Struct({
  status: Schema.Int,
  content_type: Schema.NullOr(Schema.String),
  body: Schema.String.annotate({ description: "As text, cut to 64 KiB" })
}).annotate({ identifier: "TestRequestAnswer" })

/** The answer of a test request. */
export const TestRequestResult = Schema.Struct({
  request_id: Schema.String.annotate({ description: "The request as it is stored" }),
  source_id: Schema.String,
  sample: Schema.NullOr(Schema.String).annotate({ description: "Null: the body was the caller's own" }),
  signed: Schema.Boolean,
  status: Schema.Literals(["accepted", "rejected"]),
  verified: Schema.Boolean,
  rejection_cause: Schema.NullOr(Schema.String),
  answer: Schema.NullOr(Answer).annotate({
    description: "What a sender gets back. Null: there was no answer within 20 seconds"
  })
}).annotate({ identifier: "TestRequestResult" })

export const testRequestAnswer = {
  request_id: ids.request,
  source_id: ids.source,
  sample: null,
  signed: true,
  status: "accepted",
  verified: true,
  rejection_cause: null,
  answer: { status: 200, content_type: "application/json", body: `{"ok":true,"request_id":"${ids.request}"}` }
}
