import type { Introduction } from "./Introduction.ts"

export const hubspot: Introduction = {
  name: "HubSpot",
  description: "Changes of contacts, companies, deals and tickets.",
  documentation: "https://developers.hubspot.com/docs/api/webhooks",
  setup: [
    "In HubSpot, open your app, copy its client secret, and enter it here as `webhook_secret_key`.",
    "In the webhook settings of the app, enter the URL of this source as target URL, and subscribe to events, for example `contact.creation`.",
    "Enter exactly the URL that is shown here: HubSpot signs it, too."
  ]
}
