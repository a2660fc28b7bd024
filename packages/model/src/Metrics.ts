import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The possible lengths of a bucket of a series, in milliseconds. */
export const granularities = {
  "1s": 1_000,
  "5s": 5_000,
  "10s": 10_000,
  "30s": 30_000,
  "1m": 60_000,
  "5m": 300_000,
  "15m": 900_000,
  "1h": 3_600_000
} as const

export type Granularity = keyof typeof granularities
export const Granularity = Schema.Literals(["1s", "5s", "10s", "30s", "1m", "5m", "15m", "1h"])

/**
 * The largest number of buckets in a series; and, when no granularity is requested, the number to stay below if the coarsest one
 * can.
 */
export const maxBuckets = 3_000
export const defaultBuckets = 300

export const requestMeasures = ["count", "accepted_count", "rejected_count"] as const
export const eventMeasures = [
  "count",
  "delivered_count",
  "failed_count",
  "queued_count",
  "processing_count",
  "hold_count",
  "ignored_count"
] as const

export type RequestMeasure = (typeof requestMeasures)[number]
export type EventMeasure = (typeof eventMeasures)[number]

const count = Schema.Int
const wanted = Schema.optionalKey(count)

const series = <Fields extends Schema.Struct.Fields>(identifier: string, fields: Fields) =>
  Schema.Struct({
    date_range: Schema.Struct({ start: Timestamp, end: Timestamp }),
    granularity: Granularity,
    partial: Schema.Boolean,
    series: Schema.Array(Schema.Struct({ timestamp: Timestamp, ...fields }))
  }).annotate({ identifier })

/** The buckets start at `start`, and the last one ends at `end`. Each has the requested measures. */
export const EventSeries = series("EventSeries", {
  count: wanted,
  delivered_count: wanted,
  failed_count: wanted,
  queued_count: wanted,
  processing_count: wanted,
  hold_count: wanted,
  ignored_count: wanted
})

const requestSeries = series("", { count: wanted, accepted_count: wanted, rejected_count: wanted })
export const RequestSeries = Schema.Struct({ ...requestSeries.fields, unavailable_shard_count: Schema.Int }).annotate({
  identifier: "RequestSeries"
})

/** Six counts of four hours, oldest first, the last one ending now. */
const bins = Schema.Array(count)

const events = {
  events_24h_count: count,
  events_24h_successful_count: count,
  events_24h_failed_count: count,
  events_24h_pending_count: count,
  events_24h_cancelled_count: count,
  events_24h_bins: bins,
  events_24h_successful_bins: bins,
  events_24h_failed_bins: bins,
  events_24h_pending_bins: bins,
  events_24h_cancelled_bins: bins
}

export const SourceMetrics = Schema.Struct({
  id: Schema.String,
  source_id: Schema.String,
  connections_count: count,
  requests_24h_count: count,
  requests_24h_total_count: count,
  requests_24h_accepted_count: count,
  requests_24h_rejected_count: count,
  requests_24h_accepted_bins: bins,
  requests_24h_rejected_bins: bins,
  ...events
}).annotate({ identifier: "SourceMetrics" })
export type SourceMetrics = typeof SourceMetrics.Type

export const DestinationMetrics = Schema.Struct({
  id: Schema.String,
  destination_id: Schema.String,
  connections_count: count,
  attempts_24h_count: count,
  attempts_24h_bins: bins,
  ...events
}).annotate({ identifier: "DestinationMetrics" })
export type DestinationMetrics = typeof DestinationMetrics.Type

/** `source_id` and `destination_id` are null when the connection does not exist (any more). */
export const ConnectionMetrics = Schema.Struct({
  id: Schema.String,
  connection_id: Schema.String,
  webhook_id: Schema.String,
  source_id: Schema.NullOr(Schema.String),
  destination_id: Schema.NullOr(Schema.String),
  ...events
}).annotate({ identifier: "ConnectionMetrics" })
export type ConnectionMetrics = typeof ConnectionMetrics.Type

export const TransformationMetrics = Schema.Struct({
  id: Schema.String,
  transformation_id: Schema.String,
  connections_count: count,
  executions_24h_count: count,
  executions_24h_successful_count: count,
  executions_24h_failed_count: count,
  executions_24h_successful_bins: bins,
  executions_24h_failed_bins: bins
}).annotate({ identifier: "TransformationMetrics" })
export type TransformationMetrics = typeof TransformationMetrics.Type

/** By the time of the requests that began the runs. A run that ends again after a step retry is counted again. */
export const WorkflowMetrics = Schema.Struct({
  id: Schema.String,
  workflow_id: Schema.String,
  runs_24h_count: count.annotate({ description: "Started runs" }),
  runs_24h_failed_count: count,
  bins: Schema.Array(count).annotate({
    description: "Started runs in each of 24 hours, the oldest first"
  }),
  avg_duration_ms: Schema.NullOr(Schema.Int).annotate({
    description: "Average milliseconds of the finished runs, waits included. Null: none has finished"
  })
}).annotate({ identifier: "WorkflowMetrics" })
export type WorkflowMetrics = typeof WorkflowMetrics.Type

/** What went through one resource in the time of the rates. A measure that its kind does not have is zero. */
const Rates = Schema.Struct({
  id: Schema.String,
  requests_count: count,
  events_count: count,
  successful_count: count,
  failed_count: count,
  attempts_count: count
})

/** Counts of the last minutes, which show how fast something goes now. */
export const RateList = Schema.Struct({
  date_range: Schema.Struct({ start: Timestamp, end: Timestamp }),
  count,
  models: Schema.Array(Rates)
}).annotate({ identifier: "RateList" })
export type RateList = typeof RateList.Type

/** One row for each requested id; zeros for an unknown one. */
export const MetricsList = <S extends Schema.Top>(model: S) => Schema.Struct({ count, models: Schema.Array(model) })
