import { Schema } from "effect"
import { Attempt } from "./Attempt.ts"
import { Event } from "./Event.ts"
import { ExecutionDetail } from "./Execution.ts"
import { IgnoredEvent } from "./IgnoredEvent.ts"
import { ProxyExchange } from "./ProxyExchange.ts"
import { Request } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"
import { StepSummary, WorkflowRun } from "./WorkflowRun.ts"

/** The kinds of timeline items, in the order that is used for equal times. */
export const timelineKinds = [
  "request",
  "proxy_exchange",
  "skipped_connection",
  "ignored_event",
  "workflow_run",
  "transformation",
  "event",
  "attempt"
] as const

/** A connection of the request's source that the request was not routed to, because it was off at that time and still is. */
export const SkippedConnection = Schema.Struct({
  connection_id: Schema.String,
  connection_name: Schema.String,
  destination_id: Schema.String,
  cause: Schema.Literals(["CONNECTION_DISABLED", "DESTINATION_DISABLED", "DESTINATION_DELETED"]),
  since: Timestamp
}).annotate({ identifier: "SkippedConnection" })

export interface SkippedConnection extends Schema.Schema.Type<typeof SkippedConnection> {}

/**
 * Why a request has no event. REJECTED: it was not accepted. IGNORED: each connection that it was routed to ignored it. DISABLED:
 * no connection was enabled. NO_CONNECTION: the source had none. PENDING: it is being routed.
 */
export const NoEventReason = Schema.Struct({
  code: Schema.Literals(["REJECTED", "IGNORED", "DISABLED", "NO_CONNECTION", "PENDING"]),
  message: Schema.String
}).annotate({ identifier: "NoEventReason" })

export interface NoEventReason extends Schema.Schema.Type<typeof NoEventReason> {}

/** One thing that happened to a request; the ids identify the records. */
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
  destination_id: Schema.optionalKey(Schema.String),
  workflow_id: Schema.optionalKey(Schema.String),
  workflow_run_id: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "TimelineItem" })

export interface TimelineItem extends Schema.Schema.Type<typeof TimelineItem> {}

/** A run that the request began. */
export const TracedRun = Schema.Struct({
  ...WorkflowRun.fields,
  workflow_name: Schema.String,
  steps: Schema.NullOr(Schema.Array(StepSummary)).annotate({
    description: "The steps of the first 20 runs, as in the list of all runs. Null: of a later one"
  })
}).annotate({ identifier: "TracedRun" })

export interface TracedRun extends Schema.Schema.Type<typeof TracedRun> {}

/**
 * A request with everything that followed from it. Lists are limited (see `truncated`): with more than three hundred attempts, or
 * more than 4 MiB of their answers, the oldest ones are shown, and the counts are of what is shown. Bodies above 64 KiB in the
 * data of transformations are left out (`is_large_payload`); an execution's detail has them.
 */
export const Trace = Schema.Struct({
  request: Request,
  proxy_exchange: Schema.NullOr(ProxyExchange),
  events: Schema.Array(Event),
  ignored_events: Schema.Array(IgnoredEvent),
  attempts: Schema.Array(Attempt),
  attempts_by_event_id: Schema.Record(Schema.String, Schema.Array(Attempt)),
  skipped_connections: Schema.Array(SkippedConnection),
  no_event_reason: Schema.NullOr(NoEventReason).annotate({
    description: "Why there is no event. Null: there are events"
  }),
  workflow_runs: Schema.Array(TracedRun),
  transformations: Schema.Array(ExecutionDetail),
  transformations_by_event_id: Schema.Record(Schema.String, Schema.Array(ExecutionDetail)),
  timeline: Schema.Array(TimelineItem),
  truncated: Schema.Boolean,
  counts: Schema.Struct({
    events: Schema.Int,
    ignored_events: Schema.Int,
    attempts: Schema.Int,
    skipped_connections: Schema.Int,
    workflow_runs: Schema.Int,
    transformations: Schema.Int,
    proxy_exchanges: Schema.Int
  })
}).annotate({ identifier: "Trace" })

export interface Trace extends Schema.Schema.Type<typeof Trace> {}
