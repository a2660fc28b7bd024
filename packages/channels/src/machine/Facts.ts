/** The names of the events that are recorded about channels. */

export type EventKind =
  | "retry_requested"
  | "provision_started"
  | "provision_succeeded"
  | "provision_failed"
  | "handshake_verified"
  | "handshake_rejected"
  | "renewal_succeeded"
  | "renewal_failed"
  | "subscription_expired"
  | "subscription_revoked"
  | "stopped"
  | "stop_failed"
  | "first_notification"
  | "notification_rejected"
  | "silence_detected"
  | "silence_cleared"
  | "fallback_activated"
  | "restore_attempted"
  | "fallback_restored"
  | "cursor_reset"
  | "delivery_changed"
  | "account_disconnected"
  | "account_reconnected"
  | "alert_opened"
  | "alert_resolved"

export type Severity = "info" | "warning" | "error"

export type AlertCode =
  | "channel_provision_failed"
  | "channel_renewal_failed"
  | "channel_stop_failed"
  | "channel_notification_silence"

export type MetricName =
  | "provision_attempts"
  | "provision_failures"
  | "renewals"
  | "renewal_failures"
  | "stops"
  | "stop_failures"
  | "handshakes"
  | "notifications_received"
  | "notifications_accepted"
  | "notifications_rejected"
  | "notifications_duplicate"
  | "items_fetched"
  | "polls"
  | "poll_failures"
  | "fallback_activations"
  | "fallback_restores"
  | "silence_alerts"
  | "alerts_sent"
  | "alerts_suppressed"
  | "notification_latency_ms"
  | "notification_latency_samples"

export type Counts = { readonly [name in MetricName]?: number }

/** How items of a source arrive. */
export type Mode = "instant" | "polling"

export type RunReason = "schedule" | "manual" | "notification" | "restore"
