import type { Introduction } from "./Introduction.ts"

export const openai: Introduction = {
  name: "OpenAI",
  description: "Finished responses, batches and other background work.",
  documentation: "https://platform.openai.com/docs/guides/webhooks",
  setup: [
    "In the settings of your project at OpenAI, open Webhooks and create an endpoint with the URL of this source.",
    "Choose the events, for example `response.completed`.",
    "OpenAI shows the signing secret once, when you create the endpoint: enter it here as `webhook_secret_key`."
  ]
}
