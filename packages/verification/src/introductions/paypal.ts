import type { Introduction } from "./Introduction.ts"

export const paypal: Introduction = {
  name: "PayPal",
  description: "Payments, orders, subscriptions and disputes.",
  documentation: "https://developer.paypal.com/api/rest/webhooks/",
  setup: [
    "In the PayPal Developer Dashboard, open your app, and add a webhook with the URL of this source. The sandbox and the live mode have webhooks of their own.",
    "Choose the events, for example `PAYMENT.CAPTURE.COMPLETED`.",
    "Copy the id of the webhook, and enter it here as `webhook_id`."
  ]
}
