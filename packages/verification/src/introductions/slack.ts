import type { Introduction } from "./Introduction.ts"

export const slack: Introduction = {
  name: "Slack",
  description: "Messages, commands and interactions of a Slack app.",
  documentation: "https://docs.slack.dev/apis/events-api/",
  setup: [
    "In the settings of your Slack app, copy the Signing Secret from Basic Information, and enter it here as `webhook_secret_key`.",
    "Open Event Subscriptions, switch events on, and enter the URL of this source as Request URL. Slack checks it at once, and the gateway answers its challenge.",
    "Subscribe to the events, for example `message.channels`, and save. Install the app again if Slack asks you to."
  ]
}
