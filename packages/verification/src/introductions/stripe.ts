import type { Introduction } from "./Introduction.ts"

export const stripe: Introduction = {
  name: "Stripe",
  description: "Payments, subscriptions, invoices and payouts.",
  documentation: "https://docs.stripe.com/webhooks",
  setup: [
    "In Stripe, open the webhooks of your account (in Workbench, or under Developers) and add an endpoint with the URL of this source.",
    "Choose the events to send, for example `payment_intent.succeeded`.",
    "Reveal the signing secret of the endpoint (`whsec_…`) and enter it here as `webhook_secret_key`. The test mode and the live mode have secrets of their own."
  ]
}
