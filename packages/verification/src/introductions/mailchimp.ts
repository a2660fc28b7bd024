import type { Introduction } from "./Introduction.ts"

export const mailchimp: Introduction = {
  name: "Mailchimp Transactional",
  description: "Deliveries, bounces and incoming e-mail of Mandrill.",
  documentation: "https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/",
  setup: [
    "In the settings of Mailchimp Transactional, open Webhooks and add one with the URL of this source.",
    "Choose the events, for example bounced messages.",
    "Copy the key of the webhook, and enter it here as `webhook_secret_key`.",
    "Enter exactly the URL that is shown here: Mailchimp signs it, too."
  ]
}
