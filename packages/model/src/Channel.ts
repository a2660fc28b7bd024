import { Schema } from "effect"
import { listOf, nothing } from "./Lists.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * Channels as the API shows them. A channel is the state of a provider source with instant delivery: its subscriptions at the
 * provider, what prevents them, and whether polling has taken over.
 */

export const DeliveryMode = Schema.Literals(["instant", "polling"])
export type DeliveryMode = typeof DeliveryMode.Type

export const Schedule = Schema.Struct({
  interval_minutes: Schema.Int.annotate({ description: "Minutes between two polls" })
})
export interface Schedule extends Schema.Schema.Type<typeof Schedule> {}

export const RestoreAfter = Schema.Int.annotate({ description: "Minutes until instant delivery is tried again" })

export const ChannelStatus = Schema.Literals(["connecting", "active", "expiring", "error", "fallback"])
export type ChannelStatus = typeof ChannelStatus.Type

const Time = Schema.NullOr(Timestamp)
const Text = Schema.NullOr(Schema.String)

const metricsOfDay = Schema.Struct({
  metric_date: Schema.String,
  metrics: Schema.Record(Schema.String, Schema.Int)
})

export const Channel = Schema.Struct({
  status: ChannelStatus,
  status_reason: Text.annotate({ description: "Why it has this status. Null: it works" }),
  adapter: Schema.String.annotate({ description: "The protocol of its notifications" }),
  expected_targets: Schema.Int.annotate({ description: "How many subscriptions the inputs ask for" }),
  active_subscriptions: Schema.Int.annotate({ description: "How many of them the provider has confirmed" }),
  expires_at: Time.annotate({ description: "When the first subscription ends. Null: none ends by itself" }),
  next_renewal_at: Time,
  last_renewed_at: Time,
  last_notification_at: Time,
  last_error: Text,
  provider_account: Schema.NullOr(
    Schema.Struct({
      id: Schema.String,
      status: Schema.Literals(["enabled", "disabled", "error"]),
      state: Schema.Literals(["active", "expired", "error", "revoked"])
    })
  ),
  fallback: Schema.Struct({
    auto_fallback: Schema.Boolean,
    active: Schema.Boolean.annotate({
      description: "Whether polling delivers at the moment, because subscriptions failed"
    }),
    definition_key: Text.annotate({ description: "The polling definition of the same trigger" }),
    schedule: Schedule,
    max_failures: Schema.Int,
    consecutive_failures: Schema.Int,
    activated_at: Time,
    reason: Text,
    restore_after_minutes: RestoreAfter,
    next_restore_at: Time
  }),
  alerts: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      code: Schema.String,
      message: Schema.String,
      occurrences: Schema.Int,
      first_seen_at: Timestamp,
      last_seen_at: Timestamp
    })
  ).annotate({ description: "Its active alerts" }),
  metrics_48h: Schema.Struct({ current: metricsOfDay, previous: metricsOfDay }).annotate({
    description: "The counts of the current and the previous date in UTC; zeros are left out"
  })
}).annotate({ identifier: "Channel" })
export interface Channel extends Schema.Schema.Type<typeof Channel> {}

/** A row of the list of channels. */
export const ChannelSource = Schema.Struct({
  id: Schema.String,
  source_id: Schema.String.annotate({ description: "The same as id" }),
  name: Schema.String,
  provider_key: Schema.String,
  definition_key: Schema.String,
  status: Schema.Literals(["enabled", "disabled"]).annotate({ description: "Of the source" }),
  delivery_mode: DeliveryMode,
  channel: Channel
}).annotate({ identifier: "ChannelSource", description: "A provider source with its channel." })
export interface ChannelSource extends Schema.Schema.Type<typeof ChannelSource> {}

export const ChannelList = listOf(ChannelSource, nothing)

/** What happened to a channel, its subscriptions, and the messages about its alerts. */
export const ChannelHistory = Schema.Struct({
  events: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      source_id: Schema.String,
      kind: Schema.String,
      severity: Schema.String,
      message: Schema.String,
      error_code: Text,
      subscription_id: Text,
      details: Schema.JsonObject.check(Schema.isMaxProperties(100)),
      created_at: Timestamp
    })
  ).annotate({ description: "The newest first; kept for 30 days" }),
  channels: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      adapter: Schema.String,
      target: Schema.String,
      external_channel_id: Text,
      external_resource_id: Text,
      state: Schema.Literals([
        "requested",
        "verifying",
        "active",
        "superseded",
        "expired",
        "stopped",
        "failed",
        "revoked"
      ]),
      verified_at: Time,
      expires_at: Time,
      last_renewed_at: Time,
      last_notification_at: Time,
      last_message_number: Schema.NullOr(Schema.Int),
      stopped_at: Time,
      created_at: Timestamp
    })
  ).annotate({ description: "Its newest 100 subscriptions at the provider" }),
  deliveries: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      alert_id: Schema.String,
      code: Schema.String,
      kind: Schema.Literals(["opened", "reminder", "resolved"]),
      transport: Schema.Literals(["email", "chat"]),
      recipient: Schema.String,
      status: Schema.Literals(["queued", "sent", "failed", "suppressed"]),
      response_status: Schema.NullOr(Schema.Int),
      error_code: Text,
      attempts: Schema.Int,
      suppressed_reason: Text,
      created_at: Timestamp,
      sent_at: Time
    })
  ).annotate({ description: "The newest 100 messages about its alerts; addresses are masked" })
}).annotate({ identifier: "ChannelHistory" })
export interface ChannelHistory extends Schema.Schema.Type<typeof ChannelHistory> {}

export const ChannelMetrics = Schema.Struct({
  days: Schema.Int.annotate({ description: "Days that are counted, as applied" }),
  from: Schema.String.annotate({ description: "The first date, in UTC" }),
  to: Schema.String.annotate({ description: "The last date, which is the current one" }),
  series: Schema.Array(
    Schema.Struct({ metric_date: Schema.String, metric: Schema.String, value: Schema.Int })
  ).annotate({ description: "The newest date first; zeros are left out" })
}).annotate({
  identifier: "ChannelMetrics",
  description:
    "Daily counts of all channels of the team. notification_latency_ms is the sum of all latencies: divided by notification_latency_samples it is their mean."
})
export interface ChannelMetrics extends Schema.Schema.Type<typeof ChannelMetrics> {}

export const ChannelBulkResult = Schema.Struct({
  updated: Schema.Array(Schema.String),
  errors: Schema.Array(Schema.Struct({ id: Schema.String, code: Schema.String, error: Schema.String }))
}).annotate({ identifier: "ChannelBulkResult" })
export interface ChannelBulkResult extends Schema.Schema.Type<typeof ChannelBulkResult> {}

export const ChannelRetry = Schema.Struct({
  source_id: Schema.String,
  status: Schema.Literal("connecting"),
  retry_requested_at: Timestamp
}).annotate({ identifier: "ChannelRetry" })
export interface ChannelRetry extends Schema.Schema.Type<typeof ChannelRetry> {}

const runReasons = ["schedule", "manual", "notification", "restore"] as const

export const ScheduledRun = Schema.Struct({
  id: Schema.String,
  source_id: Schema.String,
  status: Schema.Literal("scheduled"),
  reason: Schema.Literal("manual"),
  scheduled_at: Timestamp
}).annotate({ identifier: "ScheduledSourceRun" })
export interface ScheduledRun extends Schema.Schema.Type<typeof ScheduledRun> {}

/** One poll of a provider source. */
export const SourceRun = Schema.Struct({
  id: Schema.String,
  source_id: Schema.String,
  status: Schema.Literals(["scheduled", "running", "succeeded", "failed"]),
  reason: Schema.Literals(runReasons),
  items_found: Schema.Int,
  items_new: Schema.Int.annotate({ description: "How many became requests of the source" }),
  error_code: Text,
  scheduled_at: Timestamp,
  started_at: Time,
  finished_at: Time
}).annotate({ identifier: "SourceRun", description: "One poll of a provider source; kept for 30 days." })
export interface SourceRun extends Schema.Schema.Type<typeof SourceRun> {}
