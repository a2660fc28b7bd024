import type { Introduction } from "./Introduction.ts"

export const coinbaseCommerce: Introduction = {
  name: "Coinbase Commerce",
  description: "Charges and payments in crypto currencies.",
  documentation: "https://docs.cdp.coinbase.com/commerce/docs/webhooks",
  setup: [
    "In the notification settings of Coinbase Commerce, add the URL of this source as an endpoint of webhook subscriptions.",
    "Copy the shared secret of the webhook subscriptions, and enter it here as `webhook_secret_key`."
  ]
}
