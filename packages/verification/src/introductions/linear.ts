import type { Introduction } from "./Introduction.ts"

export const linear: Introduction = {
  name: "Linear",
  description: "Issues, projects and comments.",
  documentation: "https://linear.app/developers/webhooks",
  setup: [
    "In the API settings of your Linear workspace, create a webhook with the URL of this source.",
    "Choose what is sent, for example issues and comments.",
    "Copy the signing secret of the webhook, and enter it here as `webhook_secret_key`."
  ]
}
