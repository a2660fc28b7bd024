import type { Introduction } from "./Introduction.ts"

export const paystack: Introduction = {
  name: "Paystack",
  description: "Charges, transfers and subscriptions.",
  documentation: "https://paystack.com/docs/payments/webhooks/",
  setup: [
    "In the Paystack dashboard, open the API keys and webhooks in the settings, and enter the URL of this source as webhook URL.",
    "Paystack signs with the secret key of your account (`sk_…`): enter it here as `webhook_secret_key`. The test mode and the live mode have keys of their own."
  ]
}
