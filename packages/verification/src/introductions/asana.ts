import type { Introduction } from "./Introduction.ts"

export const asana: Introduction = {
  name: "Asana",
  description: "Changes of tasks, projects and portfolios.",
  documentation: "https://developers.asana.com/docs/webhooks-guide",
  setup: [
    "Create this source without a secret, with `auth_type` HMAC.",
    "Create a webhook by Asana's API (`POST /webhooks`), with the `resource` to watch and the URL of this source as `target`.",
    "Asana sends a secret while it creates the webhook. The gateway answers with it, and keeps it as `webhook_secret_key`."
  ]
}
