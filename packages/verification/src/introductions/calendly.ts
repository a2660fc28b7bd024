import type { Introduction } from "./Introduction.ts"

export const calendly: Introduction = {
  name: "Calendly",
  description: "Invitees and appointments.",
  documentation: "https://developer.calendly.com/",
  setup: [
    "Make up a long random signing key, and enter it here as `webhook_secret_key`.",
    "Create a webhook subscription by Calendly's API (`POST /webhook_subscriptions`), with the URL of this source as `url`, the same `signing_key`, and the events, for example `invitee.created`."
  ]
}
