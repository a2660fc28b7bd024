import type { Introduction } from "./Introduction.ts"

export const webex: Introduction = {
  name: "Webex",
  description: "Messages, meetings and memberships.",
  documentation: "https://developer.webex.com/docs/webhooks",
  setup: [
    "Make up a long random secret, and enter it here as `webhook_secret_key`.",
    "Create a webhook by the Webex API (`POST /v1/webhooks`), with the URL of this source as `targetUrl`, the same `secret`, a `resource`, for example `messages`, and an `event`, for example `created`."
  ]
}
