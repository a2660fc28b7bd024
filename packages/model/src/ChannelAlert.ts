import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** Something that is wrong with the channel of a source. */
export const ChannelAlert = Schema.Struct({
  id: Schema.String,
  source_id: Schema.String,
  source_name: Schema.String,
  provider_key: Schema.NullOr(Schema.String).annotate({ description: "Null: the source has no provider any more" }),
  definition_key: Schema.NullOr(Schema.String),
  code: Schema.Literals([
    "channel_provision_failed",
    "channel_renewal_failed",
    "channel_stop_failed",
    "channel_notification_silence"
  ]),
  status: Schema.Literals(["active", "resolved"]),
  message: Schema.String,
  occurrences: Schema.Int,
  first_seen_at: Timestamp,
  last_seen_at: Timestamp,
  acknowledged_at: Schema.NullOr(Timestamp).annotate({
    description: "When somebody said that they deal with it. Null: nobody has"
  }),
  acknowledged_by: Schema.NullOr(Schema.String).annotate({
    description: "The user who did. Null: nobody, or an API key"
  }),
  resolved_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "ChannelAlert" })

export interface ChannelAlert extends Schema.Schema.Type<typeof ChannelAlert> {}

/** Which alerts a list returns. */
export const AlertStatus = Schema.Literals(["active", "resolved", "all"])
export type AlertStatus = typeof AlertStatus.Type

/** How a team is told of alerts, and when the silence of a channel is one. */
export const ChannelSettings = Schema.Struct({
  email_enabled: Schema.Boolean,
  email_recipients: Schema.Array(Schema.String).annotate({ description: "Empty: the owners of the team" }),
  chat_enabled: Schema.Boolean,
  chat_configured: Schema.Boolean.annotate({ description: "Whether a URL is stored. It is never returned" }),
  chat_last_error: Schema.NullOr(Schema.String).annotate({
    description: "Why the chat refused the last message for good. Null: it did not"
  }),
  cooldown_minutes: Schema.Int.annotate({
    description: "Minutes: the shortest time between two messages about one alert"
  }),
  silence_alert_hours: Schema.Int.annotate({
    description: "After so many hours without a notification, a channel is checked"
  }),
  silence_alert_enabled: Schema.Boolean,
  updated_at: Schema.NullOr(Timestamp).annotate({ description: "Null: these are the defaults" })
}).annotate({ identifier: "ChannelSettings" })

export interface ChannelSettings extends Schema.Schema.Type<typeof ChannelSettings> {}

/** The settings of a team that has not written any. */
export const channelSettingsDefaults = {
  email_enabled: true,
  email_recipients: [],
  chat_enabled: false,
  cooldown_minutes: 60,
  silence_alert_hours: 24,
  silence_alert_enabled: true
} as const
