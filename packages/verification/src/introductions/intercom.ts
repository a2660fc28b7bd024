import type { Introduction } from "./Introduction.ts"

export const intercom: Introduction = {
  name: "Intercom",
  description: "Conversations, contacts and tickets.",
  documentation: "https://developers.intercom.com/docs/webhooks",
  setup: [
    "In the Developer Hub of Intercom, open your app, and copy its client secret. Enter it here as `webhook_secret_key`.",
    "In the webhook settings of the app, enter the URL of this source as endpoint URL.",
    "Choose the topics, for example `conversation.user.created`, and save."
  ]
}
