import type { Introduction } from "./Introduction.ts"

export const standard: Introduction = {
  name: "Standard Webhooks",
  description: "Webhooks of any service that signs by the Standard Webhooks specification.",
  documentation: "https://www.standardwebhooks.com/",
  setup: [
    "In the webhook settings of the service, add an endpoint with the URL of this source.",
    "Copy the signing secret of the endpoint (`whsec_…`), and enter it here as `webhook_secret_key`."
  ]
}
