import type { Introduction } from "./Introduction.ts"

export const sendgrid: Introduction = {
  name: "SendGrid",
  description: "Deliveries, opens and bounces of e-mails.",
  documentation: "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event",
  setup: [
    "In the mail settings of SendGrid, open Event Webhooks and add one with the URL of this source.",
    "Choose the events, for example bounces.",
    "Switch on the signed event webhook, copy its verification key, and enter it here as `public_key`."
  ]
}
