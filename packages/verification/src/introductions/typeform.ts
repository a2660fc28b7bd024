import type { Introduction } from "./Introduction.ts"

export const typeform: Introduction = {
  name: "Typeform",
  description: "Answers to forms.",
  documentation: "https://www.typeform.com/developers/webhooks/",
  setup: [
    "In the form's connections, open Webhooks and add one with the URL of this source.",
    "Set a secret in the settings of the webhook, and enter the same one here as `webhook_secret_key`.",
    "Switch the webhook on."
  ]
}
