import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ChannelAlert, ChannelSettings } from "@tidegate/model/ChannelAlert"
import * as Characters from "@tidegate/model/Characters"
import { administering, editing, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { at, ids } from "@tidegate/resources/ExampleIds"
import { bodyOf } from "@tidegate/resources/Resource"
import { Authorization } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** One address, so that it can be nothing else in the header of a message. */
const Address = Schema.String.check(
  Characters.upTo(254),
  Schema.isPattern(/^[\w.!#$%&'*+/=?^`{|}~-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+$/, {
    message: "must be an e-mail address"
  })
)

/** The message has no part of it, because the URL is the chat's credential. */
const isChatUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return text === "" || (url?.protocol === "https:" && url.username === "" && url.password === "")
}

const from = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const settingsPatch = bodyOf(
  Schema.Struct({
    email_enabled: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether alerts are sent by e-mail" })),
    email_recipients: Schema.optionalKey(
      Schema.Array(Address)
        .check(Schema.isMaxLength(10))
        .annotate({ description: "At most 10 addresses. Empty: the owners of the team" })
    ),
    chat_enabled: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether alerts are sent to the chat. It needs a URL" })
    ),
    chat_webhook_url: Schema.optionalKey(
      Schema.String.check(
        Characters.upTo(2_000),
        Schema.makeFilter((text) => isChatUrl(text) || "must be an https URL without user name and password")
      ).annotate({
        description: "The incoming webhook of the chat. It is stored encrypted and never returned. Empty: it is removed"
      })
    ),
    cooldown_minutes: Schema.optionalKey(
      from(5, 10_080).annotate({ description: "Minutes: the shortest time between two messages about one alert" })
    ),
    silence_alert_hours: Schema.optionalKey(
      from(1, 720).annotate({ description: "After so many hours without a notification, a channel is checked" })
    ),
    silence_alert_enabled: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether missing notifications are an alert" })
    )
  }).annotate({ identifier: "ChannelSettingsPatch" })
)

const read = notByProjectKeys(reading)

const settings = {
  email_enabled: true,
  email_recipients: ["ada@example.com"],
  chat_enabled: true,
  chat_configured: true,
  chat_last_error: null,
  cooldown_minutes: 60,
  silence_alert_hours: 24,
  silence_alert_enabled: true,
  updated_at: at
} as const

const alert = {
  id: ids.channelAlert,
  source_id: ids.source,
  source_name: "Team calendar",
  provider_key: "google_calendar",
  definition_key: "event.changed",
  code: "channel_renewal_failed",
  status: "active",
  message: "The provider answered with 503",
  occurrences: 3,
  first_seen_at: at,
  last_seen_at: at,
  acknowledged_at: null,
  acknowledged_by: null,
  resolved_at: null
} as const

const changed = {
  permission: administering,
  summary: "Change how the team is told of alerts",
  description:
    "Members that are left out keep their values. `chat_webhook_url` is stored encrypted, and no answer contains it.",
  body: {
    chat_enabled: true,
    chat_webhook_url: "https://chat.example.com/hooks/alerts",
    email_recipients: ["ada@example.com"]
  },
  answer: settings,
  errors: ["CHANNEL_SETTINGS_INVALID"]
} as const

const path = "/sources/channel-settings"
const write = { query: Parameters.onlyTeam, payload: settingsPatch.described, success: ChannelSettings }

/** Alerts about channels, and how a team is told of them. */
export class ChannelAlertsApi extends HttpApiGroup.make("channelAlerts")
  .add(
    HttpApiEndpoint.get("list", "/sources/channel-alerts", {
      query: Lists.channelAlerts.query,
      success: Lists.channelAlerts.answer(ChannelAlert)
    }).annotateMerge(
      operation({
        id: "listChannelAlerts",
        permission: read,
        summary: "List the alerts of channels",
        description:
          "Returns alerts in pages by cursor, those that were seen last first. Resolved alerts are kept for 90 days.",
        answer: Lists.channelAlerts.example(alert),
        errors: ["INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.post("acknowledge", "/sources/channel-alerts/:id/acknowledge", {
      params: Parameters.pathOf("alert", ids.channelAlert),
      query: Parameters.onlyTeam,
      success: ChannelAlert
    }).annotateMerge(
      operation({
        id: "acknowledgeChannelAlert",
        permission: notByProjectKeys(editing),
        summary: "Acknowledge an alert of a channel",
        description:
          "Says that somebody deals with it: no reminders are sent until it is resolved. A resolved alert, or a repetition, changes nothing.",
        answer: { ...alert, acknowledged_at: at, acknowledged_by: ids.user },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("settings", path, { query: Parameters.onlyTeam, success: ChannelSettings }).annotateMerge(
      operation({
        id: "getChannelSettings",
        permission: read,
        summary: "Retrieve how the team is told of alerts",
        description: "Before the first change, these are the defaults.",
        answer: settings
      })
    ),
    HttpApiEndpoint.patch("updateSettings", path, write).annotateMerge(
      operation({ id: "updateChannelSettings", ...changed })
    ),
    HttpApiEndpoint.put("updateSettingsByPut", path, write).annotateMerge(
      operation({ id: "updateChannelSettingsByPut", ...changed })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Channel alerts", description: "What is wrong with channels, and who is told of it." })
  ) {}
