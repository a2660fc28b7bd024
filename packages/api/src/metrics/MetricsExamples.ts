import { ids } from "../contract/Examples.ts"

const date_range = { start: "2026-01-01T00:00:00.000Z", end: "2026-01-01T00:02:00.000Z" }
const at = (minute: number) => ({ timestamp: `2026-01-01T00:0${minute}:00.000Z` })

export const requestSeries = {
  date_range,
  granularity: "1m",
  partial: false,
  series: [
    { ...at(0), count: 3, accepted_count: 2, rejected_count: 1 },
    { ...at(1), count: 0, accepted_count: 0, rejected_count: 0 }
  ],
  unavailable_shard_count: 0
} as const

const nothing = {
  count: 0,
  delivered_count: 0,
  failed_count: 0,
  queued_count: 0,
  processing_count: 0,
  hold_count: 0,
  ignored_count: 0
}

export const eventSeries = {
  date_range,
  granularity: "1m",
  partial: false,
  series: [
    { ...at(0), ...nothing, count: 4, delivered_count: 3, failed_count: 1, ignored_count: 2 },
    { ...at(1), ...nothing }
  ]
} as const

const events = {
  events_24h_count: 12,
  events_24h_successful_count: 10,
  events_24h_failed_count: 1,
  events_24h_pending_count: 1,
  events_24h_cancelled_count: 0,
  events_24h_bins: [0, 0, 2, 4, 5, 1],
  events_24h_successful_bins: [0, 0, 2, 4, 4, 0],
  events_24h_failed_bins: [0, 0, 0, 0, 1, 0],
  events_24h_pending_bins: [0, 0, 0, 0, 0, 1],
  events_24h_cancelled_bins: [0, 0, 0, 0, 0, 0]
}

const one = <Model>(model: Model) => ({ count: 1, models: [model] })

export const sources = one({
  id: ids.source,
  source_id: ids.source,
  connections_count: 1,
  requests_24h_count: 13,
  requests_24h_total_count: 13,
  requests_24h_accepted_count: 12,
  requests_24h_rejected_count: 1,
  requests_24h_accepted_bins: [0, 0, 2, 4, 5, 1],
  requests_24h_rejected_bins: [1, 0, 0, 0, 0, 0],
  ...events
})

export const destinations = one({
  id: ids.destination,
  destination_id: ids.destination,
  connections_count: 1,
  attempts_24h_count: 14,
  attempts_24h_bins: [0, 0, 2, 4, 7, 1],
  ...events
})

export const connections = one({
  id: ids.connection,
  connection_id: ids.connection,
  webhook_id: ids.connection,
  source_id: ids.source,
  destination_id: ids.destination,
  ...events
})

export const transformations = one({
  id: ids.transformation,
  transformation_id: ids.transformation,
  connections_count: 1,
  executions_24h_count: 12,
  executions_24h_successful_count: 12,
  executions_24h_failed_count: 0,
  executions_24h_successful_bins: [0, 0, 0, 2, 4, 6],
  executions_24h_failed_bins: [0, 0, 0, 0, 0, 0]
})

export const workflows = one({
  id: ids.workflow,
  workflow_id: ids.workflow,
  runs_24h_count: 6,
  runs_24h_failed_count: 1,
  bins: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 1],
  avg_duration_ms: 900
})

export const rates = {
  date_range: { start: "2026-01-01T00:00:00.000Z", end: "2026-01-01T00:04:30.000Z" },
  count: 1,
  models: [
    {
      id: ids.connection,
      requests_count: 0,
      events_count: 540,
      successful_count: 530,
      failed_count: 10,
      attempts_count: 0
    }
  ]
}
