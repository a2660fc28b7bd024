import type { Introduction } from "./Introduction.ts"

export const lemonSqueezy: Introduction = {
  name: "Lemon Squeezy",
  description: "Orders, subscriptions and licences.",
  documentation: "https://docs.lemonsqueezy.com/help/webhooks",
  setup: [
    "In the settings of your Lemon Squeezy store, open Webhooks and add one with the URL of this source as callback URL.",
    "Set a signing secret, and enter the same one here as `webhook_secret_key`.",
    "Choose the events, for example `order_created`."
  ]
}
