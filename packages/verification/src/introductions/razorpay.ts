import type { Introduction } from "./Introduction.ts"

export const razorpay: Introduction = {
  name: "Razorpay",
  description: "Payments, orders and refunds.",
  documentation: "https://razorpay.com/docs/webhooks/",
  setup: [
    "In the Razorpay dashboard, open the webhooks in the account's settings, and add one with the URL of this source.",
    "Set a Secret, and enter the same one here as `webhook_secret_key`.",
    "Choose the active events, for example `payment.captured`."
  ]
}
