import type { Introduction } from "./Introduction.ts"

export const line: Introduction = {
  name: "LINE",
  description: "Messages and events of a LINE channel.",
  documentation: "https://developers.line.biz/en/docs/messaging-api/receiving-messages/",
  setup: [
    "In the LINE Developers Console, open your Messaging API channel, copy its Channel secret, and enter it here as `webhook_secret_key`.",
    "In the settings of the Messaging API, enter the URL of this source as Webhook URL, switch on its use, and press Verify."
  ]
}
