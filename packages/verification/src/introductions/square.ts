import type { Introduction } from "./Introduction.ts"

export const square: Introduction = {
  name: "Square",
  description: "Payments, orders and customers.",
  documentation: "https://developer.squareup.com/docs/webhooks/overview",
  setup: [
    "In the Square Developer Console, open the webhook subscriptions of your application and add one with the URL of this source.",
    "Choose the events, for example `payment.created`.",
    "Show the signature key of the subscription, and enter it here as `webhook_secret_key`.",
    "Enter exactly the URL that is shown here: Square signs it, too."
  ]
}
