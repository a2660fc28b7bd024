import { Schema } from "effect"
import { RequestData, RequestStatus } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * A request as it is shown to those who watch its source: what was received, without its results. `data` is null when retention
 * has removed it; a body larger than a list shows is left out.
 */
export const CapturedRequest = Schema.Struct({
  id: Schema.String,
  status: RequestStatus,
  created_at: Timestamp,
  data: Schema.NullOr(RequestData)
}).annotate({ identifier: "CapturedRequest" })

export interface CapturedRequest extends Schema.Schema.Type<typeof CapturedRequest> {}

/** The channel on which ingress announces new requests of the source: a wake-up notification. */
export const capturedChannel = (source: string): string => `captured:${source}`

/** The messages of a stream: it has begun; each request stored since; there were more than it shows; it is still open. */
export const StreamFrame = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    bin_id: Schema.String.annotate({ description: "From here on the stream shows every request of this bin" })
  }),
  Schema.Struct({ type: Schema.Literal("request"), request: CapturedRequest }),
  Schema.Struct({
    type: Schema.Literal("skipped").annotate({
      description: "More requests arrived at once than a stream shows. Read the list instead"
    })
  }),
  Schema.Struct({
    type: Schema.Literal("alive").annotate({
      description: "Sent every 30 seconds. After 75 seconds without a frame, the connection is lost"
    })
  })
]).annotate({ identifier: "StreamFrame" })

export type StreamFrame = typeof StreamFrame.Type
