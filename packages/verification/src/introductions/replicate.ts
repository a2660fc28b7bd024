import type { Introduction } from "./Introduction.ts"

export const replicate: Introduction = {
  name: "Replicate",
  description: "The states of predictions and trainings.",
  documentation: "https://replicate.com/docs/topics/webhooks",
  setup: [
    "Read the signing secret of your account by Replicate's API (`GET /v1/webhooks/default/secret`), and enter it here as `webhook_secret_key`.",
    "Send the URL of this source as `webhook` when you create a prediction or a training."
  ]
}
