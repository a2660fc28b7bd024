import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Provider sources. A channel is the state of one of them, instant or polling. It has subscriptions at the provider, and items on their way to
 * becoming requests. The id of an item's request is chosen when the item is stored, so that the request is made once. `items.body` is removed
 * when the request is stored; the row stays for 30 days, to recognise the same item.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "shard": null until its actor has worked once. "due_at": null while it waits for nothing.
  `create table channels (
    source_id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    shard int2,
    due_at timestamptz,
    version bigint not null default 1,
    state json not null default '{}',
    dirty_at timestamptz,
    run_id text collate "C",
    retry_requested_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  ) with (fillfactor = 70)`,
  `create index channels_due on channels (shard, due_at) where due_at is not null`,
  `create index channels_team on channels (team_id)`,

  // "state": requested, verifying, active, superseded, expired, stopped, failed, revoked.
  `create table channel_subscriptions (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    adapter text not null,
    definition_key text not null,
    account_id text collate "C",
    target text not null,
    token_hash text collate "C" not null unique,
    secrets text not null,
    external_channel_id text,
    external_resource_id text,
    state text not null,
    verified_at timestamptz,
    expires_at timestamptz,
    last_renewed_at timestamptz,
    last_notification_at timestamptz,
    last_message_number bigint,
    last_error text,
    stop_at timestamptz,
    stopped_at timestamptz,
    created_at timestamptz not null,
    forgotten_at timestamptz
  )`,
  `create index channel_subscriptions_source on channel_subscriptions (source_id, created_at)`,
  `create index channel_subscriptions_team on channel_subscriptions (team_id)`,
  `create index channel_subscriptions_forgotten on channel_subscriptions (forgotten_at) where forgotten_at is not null`,

  // "key": the SHA-256 of the pair key and the item's id.
  `create table channel_items (
    source_id text collate "C" not null,
    key bytea not null,
    team_id text collate "C" not null references teams (id),
    request_id text collate "C" not null,
    subscription_id text collate "C",
    mode text not null,
    body text,
    occurred_at timestamptz,
    received_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (source_id, key)
  )`,
  `create index channel_items_waiting on channel_items (source_id, request_id) where body is not null`,
  `create index channel_items_expires on channel_items (expires_at)`,
  `create index channel_items_team on channel_items (team_id)`,

  `create table channel_events (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    kind text not null,
    severity text not null,
    message text not null,
    error_code text,
    subscription_id text collate "C",
    details json not null default '{}',
    created_at timestamptz not null,
    expires_at timestamptz not null
  )`,
  `create index channel_events_source on channel_events (source_id, id)`,
  `create index channel_events_expires on channel_events (expires_at)`,
  `create index channel_events_team on channel_events (team_id)`,

  // "notify_at": when its next notification is decided; null: nothing is to be sent. "expires_at": null while it is active.
  `create table channel_alerts (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    code text not null,
    status text not null,
    message text not null,
    occurrences integer not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    resolved_at timestamptz,
    notify_at timestamptz,
    expires_at timestamptz
  )`,
  `create unique index channel_alerts_active on channel_alerts (source_id, code) where status = 'active'`,
  `create index channel_alerts_team on channel_alerts (team_id, last_seen_at, id)`,
  `create index channel_alerts_source on channel_alerts (source_id)`,
  `create index channel_alerts_notify on channel_alerts (notify_at) where notify_at is not null`,
  `create index channel_alerts_expires on channel_alerts (expires_at) where expires_at is not null`,

  // One message to one transport about one alert; those with the same "message_id" are sent as one.
  `create table channel_alert_deliveries (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    alert_id text collate "C" not null,
    code text not null,
    kind text not null,
    transport text not null,
    recipient text not null,
    status text not null,
    message_id text collate "C",
    response_status integer,
    error_code text,
    attempts integer not null default 0,
    suppressed_reason text,
    due_at timestamptz,
    created_at timestamptz not null,
    sent_at timestamptz,
    expires_at timestamptz not null
  )`,
  `create index channel_alert_deliveries_source on channel_alert_deliveries (source_id, id)`,
  `create index channel_alert_deliveries_alert on channel_alert_deliveries (alert_id, id)`,
  `create index channel_alert_deliveries_due on channel_alert_deliveries (due_at) where due_at is not null`,
  `create index channel_alert_deliveries_expires on channel_alert_deliveries (expires_at)`,
  `create index channel_alert_deliveries_team on channel_alert_deliveries (team_id)`,

  `create table channel_settings (
    team_id text collate "C" primary key references teams (id),
    email_enabled boolean not null,
    email_recipients text[] not null,
    chat_enabled boolean not null,
    chat_webhook_url text,
    chat_last_error text,
    cooldown_minutes integer not null,
    silence_alert_hours integer not null,
    silence_alert_enabled boolean not null,
    updated_at timestamptz not null
  )`,

  `create table channel_metrics (
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    metric_date date not null,
    metric text not null,
    value bigint not null,
    expires_at timestamptz not null,
    primary key (team_id, metric_date, metric, source_id)
  ) with (fillfactor = 70)`,
  `create index channel_metrics_source on channel_metrics (source_id, metric_date)`,
  `create index channel_metrics_expires on channel_metrics (expires_at)`,

  `create table source_runs (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    source_id text collate "C" not null,
    status text not null,
    reason text not null,
    items_found integer not null default 0,
    items_new integer not null default 0,
    error_code text,
    scheduled_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    expires_at timestamptz not null
  )`,
  `create index source_runs_source on source_runs (source_id, id)`,
  `create index source_runs_expires on source_runs (expires_at)`,
  `create index source_runs_team on source_runs (team_id)`
]
