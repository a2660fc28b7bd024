import type { Introduction } from "./Introduction.ts"

export const wooCommerce: Introduction = {
  name: "WooCommerce",
  description: "Orders, products and customers of a WooCommerce shop.",
  documentation: "https://woocommerce.com/document/webhooks/",
  setup: [
    "In WordPress, open WooCommerce, Settings, Advanced, Webhooks, and add a webhook.",
    "Enter the URL of this source as Delivery URL, choose the topic, for example the creation of an order, and the status Active.",
    "Set a Secret, and enter the same one here as `webhook_secret_key`. WooCommerce pings the URL when it saves the webhook."
  ]
}
