import type { Introduction } from "./Introduction.ts"

export const zendesk: Introduction = {
  name: "Zendesk",
  description: "Tickets, users and other events of Zendesk.",
  documentation: "https://developer.zendesk.com/documentation/webhooks/",
  setup: [
    "In the Admin Center of Zendesk, open Apps and integrations, Webhooks, and create a webhook with the URL of this source, the method POST and the format JSON.",
    "Subscribe it to events, or connect it to a trigger or an automation.",
    "Reveal the secret of the webhook, and enter it here as `webhook_secret_key`."
  ]
}
