import { at, ids } from "@tidegate/resources/ExampleIds"
import { source } from "../contract/Examples.ts"

/** The examples of provider sources and their channels. */

const renewed = "2026-01-08T00:00:00.000Z"

const fallback = {
  auto_fallback: true,
  active: false,
  definition_key: "entry.added_polling",
  schedule: { interval_minutes: 15 },
  max_failures: 3,
  consecutive_failures: 0,
  activated_at: null,
  reason: null,
  restore_after_minutes: 30,
  next_restore_at: null
} as const

const channel = {
  status: "active",
  status_reason: null,
  adapter: "websub",
  expected_targets: 1,
  active_subscriptions: 1,
  expires_at: renewed,
  next_renewal_at: "2026-01-06T14:24:00.000Z",
  last_renewed_at: at,
  last_notification_at: at,
  last_error: null,
  provider_account: null,
  fallback,
  alerts: [],
  metrics_48h: {
    current: {
      metric_date: "2026-01-01",
      metrics: { notifications_received: 12, notification_latency_ms: 8400, notification_latency_samples: 12 }
    },
    previous: { metric_date: "2025-12-31", metrics: {} }
  }
} as const

export const channelSource = {
  id: ids.itemSource,
  source_id: ids.itemSource,
  name: "blog",
  provider_key: "websub",
  definition_key: "entry.added",
  status: "enabled",
  delivery_mode: "instant",
  channel
} as const

export const channels = { count: 1, next_cursor: null, has_more: false, models: [channelSource] }

export const polling = {
  ...source,
  id: ids.itemSource,
  name: "blog",
  description: null,
  type: "PROVIDER",
  input_type: "provider",
  url: `https://hooks.example.com/e/${ids.itemSource}`,
  config: {
    ...source.config,
    auth_type: null,
    auth: {},
    provider: {
      provider_key: "websub",
      definition_key: "entry.added_polling",
      provider_account_id: null,
      inputs: { url: "https://blog.example.com/feed", require_sha256: false },
      schedule: { interval_minutes: 15 },
      auto_fallback: true,
      max_failures: 3,
      restore_after_minutes: 30
    }
  },
  provider_key: "websub",
  definition_key: "entry.added_polling",
  delivery_mode: "polling",
  schedule: { interval_minutes: 15 },
  provider_account_id: null,
  channel: null
}

export const history = {
  events: [
    {
      id: ids.channelEvent,
      source_id: ids.itemSource,
      kind: "renewal_succeeded",
      severity: "info",
      message: "Renewed until 2026-01-08T00:00:00.000Z",
      error_code: null,
      subscription_id: ids.channelSubscription,
      details: {},
      created_at: at
    }
  ],
  channels: [
    {
      id: ids.channelSubscription,
      adapter: "websub",
      target: "https://blog.example.com/feed",
      external_channel_id: null,
      external_resource_id: null,
      state: "active",
      verified_at: at,
      expires_at: renewed,
      last_renewed_at: at,
      last_notification_at: at,
      last_message_number: null,
      stopped_at: null,
      created_at: at
    }
  ],
  deliveries: []
} as const

export const metrics = {
  days: 14,
  from: "2025-12-19",
  to: "2026-01-01",
  series: [{ metric_date: "2026-01-01", metric: "notification_latency_ms", value: 8400 }]
}

export const retried = { source_id: ids.itemSource, status: "connecting", retry_requested_at: at } as const

export const bulk = {
  updated: [ids.itemSource],
  errors: []
}

export const scheduled = {
  id: ids.sourceRun,
  source_id: ids.itemSource,
  status: "scheduled",
  reason: "manual",
  scheduled_at: at
} as const

export const run = {
  id: ids.sourceRun,
  source_id: ids.itemSource,
  status: "succeeded",
  reason: "manual",
  items_found: 10,
  items_new: 2,
  error_code: null,
  scheduled_at: at,
  started_at: at,
  finished_at: at
} as const
