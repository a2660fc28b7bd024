import { Schema } from "effect"
import { Attempt } from "./Attempt.ts"
import { Event } from "./Event.ts"
import { ExecutionDetail } from "./Execution.ts"
import { IgnoredEvent } from "./IgnoredEvent.ts"
import { ProxyExchange } from "./ProxyExchange.ts"
import { Request } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"

/** The kinds of a timeline, in the order in which ties of time are listed. */
export const timelineKinds = [
  "request",
  "proxy_exchange",
  "ignored_event",
  "transformation",
  "event",
  "attempt"
] as const

/** One thing that happened to a request; the ids say to what. */
export const TimelineItem = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literals(timelineKinds),
  label: Schema.String,
  at: Timestamp,
  status: Schema.optionalKey(Schema.String),
  request_id: Schema.String,
  event_id: Schema.optionalKey(Schema.String),
  attempt_id: Schema.optionalKey(Schema.String),
  ignored_event_id: Schema.optionalKey(Schema.String),
  transformation_execution_id: Schema.optionalKey(Schema.String),
  proxy_exchange_id: Schema.optionalKey(Schema.String),
  connection_id: Schema.optionalKey(Schema.String),
  destination_id: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "TimelineItem" })

export interface TimelineItem extends Schema.Schema.Type<typeof TimelineItem> {}

/**
 * A request with all that became of it. Lists are bounded (see `truncated`): a request with more than three hundred
 * attempts, or with more than 4 MiB of what they were answered, shows the oldest of them, the counts are those of what is shown. Of the data of transformations, bodies above
 * 64 KiB are left out (`is_large_payload`); an execution's detail has them.
 */
export const Trace = Schema.Struct({
  request: Request,
  proxy_exchange: Schema.NullOr(ProxyExchange),
  events: Schema.Array(Event),
  ignored_events: Schema.Array(IgnoredEvent),
  attempts: Schema.Array(Attempt),
  attempts_by_event_id: Schema.Record(Schema.String, Schema.Array(Attempt)),
  transformations: Schema.Array(ExecutionDetail),
  transformations_by_event_id: Schema.Record(Schema.String, Schema.Array(ExecutionDetail)),
  timeline: Schema.Array(TimelineItem),
  truncated: Schema.Boolean,
  counts: Schema.Struct({
    events: Schema.Int,
    ignored_events: Schema.Int,
    attempts: Schema.Int,
    transformations: Schema.Int,
    proxy_exchanges: Schema.Int
  })
}).annotate({ identifier: "Trace" })

export interface Trace extends Schema.Schema.Type<typeof Trace> {}
