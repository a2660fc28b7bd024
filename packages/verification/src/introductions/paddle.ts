import type { Introduction } from "./Introduction.ts"

export const paddle: Introduction = {
  name: "Paddle",
  description: "Subscriptions, transactions and customers.",
  documentation: "https://developer.paddle.com/webhooks/overview",
  setup: [
    "In Paddle, open Developer tools, Notifications, and create a destination of the type webhook with the URL of this source.",
    "Choose the events, for example `transaction.completed`.",
    "Copy the secret key of the destination, and enter it here as `webhook_secret_key`."
  ]
}
