import type { Introduction } from "./Introduction.ts"

export const svix: Introduction = {
  name: "Svix",
  description: "Webhooks of any service that sends by Svix.",
  documentation: "https://docs.svix.com/receiving/introduction",
  setup: [
    "In the webhook settings of the service, add an endpoint with the URL of this source.",
    "Choose the events.",
    "Copy the signing secret of the endpoint (`whsec_…`), and enter it here as `webhook_secret_key`."
  ]
}
