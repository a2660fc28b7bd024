import type { Introduction } from "./Introduction.ts"

export const gocardless: Introduction = {
  name: "GoCardless",
  description: "Payments, mandates and payouts.",
  documentation: "https://developer.gocardless.com/api-reference/#appendix-webhooks",
  setup: [
    "In the developer settings of the GoCardless dashboard, create a webhook endpoint with the URL of this source.",
    "Copy the secret of the endpoint, or set one of your own, and enter it here as `webhook_secret_key`."
  ]
}
