import type { Introduction } from "./Introduction.ts"

export const checkoutCom: Introduction = {
  name: "Checkout.com",
  description: "Payments, refunds and disputes.",
  documentation: "https://www.checkout.com/docs/developer-resources/webhooks",
  setup: [
    "In the Checkout.com dashboard, or with its workflows API, add a webhook with the URL of this source.",
    "Enter the signature key of the webhook here as `webhook_secret_key`.",
    "Choose the events, for example `payment_approved`."
  ]
}
