import type { Introduction } from "./Introduction.ts"

export const chargebee: Introduction = {
  name: "Chargebee",
  description: "Subscriptions, invoices and payments.",
  documentation: "https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings",
  setup: [
    "Make up a user name and a password, and enter them here as `username` and `password`.",
    "In the settings of Chargebee, add a webhook with the URL of this source, protected by basic authentication with the same user name and password.",
    "Choose the events."
  ]
}
