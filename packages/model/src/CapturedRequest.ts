import { Schema } from "effect"
import { RequestData, RequestStatus } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * A request as whoever watches its source is shown it: what was received, and nothing of what became of it. `data` is null when
 * retention took it; a larger body than a list shows is left out of it.
 */
export const CapturedRequest = Schema.Struct({
  id: Schema.String,
  status: RequestStatus,
  created_at: Timestamp,
  data: Schema.NullOr(RequestData)
}).annotate({ identifier: "CapturedRequest" })

export interface CapturedRequest extends Schema.Schema.Type<typeof CapturedRequest> {}

/** The feed's channel where the doors tell that the source has a new request: a hint to look. */
export const capturedChannel = (source: string): string => `captured:${source}`

/** What a stream tells: that it has begun, each request that was stored since, that there were more than it tells, and that it is there. */
export const StreamFrame = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("hello"),
    bin_id: Schema.String.annotate({ description: "From here on every request of this bin is told" })
  }),
  Schema.Struct({ type: Schema.Literal("request"), request: CapturedRequest }),
  Schema.Struct({
    type: Schema.Literal("skipped").annotate({ description: "More came at once than a stream tells: read the list" })
  }),
  Schema.Struct({
    type: Schema.Literal("alive").annotate({
      description: "Every 30 seconds: who has heard nothing for 75 has lost the stream"
    })
  })
]).annotate({ identifier: "StreamFrame" })

export type StreamFrame = typeof StreamFrame.Type
