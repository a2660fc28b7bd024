import type { Introduction } from "./Introduction.ts"

export const clerk: Introduction = {
  name: "Clerk",
  description: "Users, organisations and sessions.",
  documentation: "https://clerk.com/docs/webhooks/overview",
  setup: [
    "In the Clerk dashboard, open Webhooks and add an endpoint with the URL of this source.",
    "Choose the events, for example `user.created`.",
    "Copy the signing secret of the endpoint (`whsec_…`), and enter it here as `webhook_secret_key`."
  ]
}
