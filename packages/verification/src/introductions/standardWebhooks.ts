import type { Introduction } from "./Introduction.ts"

export const standardWebhooks: Introduction = {
  name: "Standard Webhooks (long name)",
  description: "The same as the type `STANDARD`, under the full name of the specification.",
  documentation: "https://www.standardwebhooks.com/",
  setup: [
    "In the webhook settings of the service, add an endpoint with the URL of this source.",
    "Copy the signing secret of the endpoint (`whsec_…`), and enter it here as `webhook_secret_key`."
  ]
}
