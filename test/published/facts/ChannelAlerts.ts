import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/ChannelAlerts.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")
const delivery = tests("packages/entities/test/AlertDelivery.test.ts")
const decision = tests("packages/channels/test/AlertDecision.test.ts")

const changed = api("Settings are the defaults until they are changed, and members that are left out stay")
const chat = api("The chat's URL is stored encrypted, never returned, and needed to switch the chat on")
const refused = api("Invalid settings are refused, and name every member that is wrong")
const listed = api("Alerts are listed with their sources, active ones by default")

const acknowledged = api("An alert is acknowledged once, by its own team, and not after it is resolved")

export const channelAlerts: Section = {
  title: "Alerts of channels",
  endpoints: [
    row("GET /sources/channel-alerts", listed),
    row("POST /sources/channel-alerts/{id}/acknowledge", acknowledged),
    row("GET,PATCH,PUT /sources/channel-settings", changed)
  ],
  fields: {
    ChannelAlert: [of("acknowledged_at acknowledged_by", acknowledged), of("*", listed)],
    ChannelSettings: [
      of("chat_configured chat_enabled", chat),
      of(
        "chat_last_error",
        delivery("A chat that refuses the message for good is named in the settings until it takes one")
      ),
      of("*", changed)
    ],
    ChannelSettingsPatch: [
      of("chat_webhook_url chat_enabled", chat),
      of("email_enabled cooldown_minutes silence_alert_hours email_recipients", refused),
      of("silence_alert_enabled", changed)
    ]
  },
  states: [
    row(
      "a message is opened, a reminder or resolved; queued, sent, failed or suppressed",
      decision("Messages are decided for a $when")
    ),
    row(
      "acknowledged: no reminder until it is resolved",
      delivery("An acknowledged alert has no reminders, its end is told, and the next alert of its kind is sent")
    ),
    row(
      "resolved once",
      delivery("An alert is sent to the mail server and to the chat, and once more when it is resolved")
    ),
    row("no mail server: SMTP_NOT_CONFIGURED", delivery("Messages that cannot be sent are recorded with the reason"))
  ],
  limits: [
    row(
      "alerts in a page: 50 by default, at most 100",
      lists("List ${path} has the documented envelope, order and limits")
    ),
    row("cooldown_minutes from 5 to 10,080", refused),
    row("silence_alert_hours from 1 to 720", refused),
    row("at most 10 recipients", refused)
  ]
}
