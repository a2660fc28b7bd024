import type { Introduction } from "./Introduction.ts"

export const shopify: Introduction = {
  name: "Shopify",
  description: "Orders, products, customers and fulfilments of a shop.",
  documentation: "https://shopify.dev/docs/apps/build/webhooks",
  setup: [
    "For a shop, open Settings, Notifications, Webhooks in its administration; for an app, subscribe in its configuration or by the API.",
    "Create a webhook for each event, for example the creation of an order, in the format JSON, with the URL of this source.",
    "Enter the key with which your webhooks are signed here as `webhook_secret_key`: it is shown below the shop's webhooks. Webhooks of an app are signed with the app's client secret instead."
  ]
}
