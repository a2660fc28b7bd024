import type { Introduction } from "./Introduction.ts"

export const mux: Introduction = {
  name: "Mux",
  description: "Videos, live streams and their states.",
  documentation: "https://www.mux.com/docs/core/listen-for-webhooks",
  setup: [
    "In the Mux dashboard, open the webhooks in the settings of your environment, and create one with the URL of this source.",
    "Show the signing secret of the webhook, and enter it here as `webhook_secret_key`."
  ]
}
