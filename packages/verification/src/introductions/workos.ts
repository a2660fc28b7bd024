import type { Introduction } from "./Introduction.ts"

export const workos: Introduction = {
  name: "WorkOS",
  description: "Users, directories and single sign-on.",
  documentation: "https://workos.com/docs/events/data-syncing/webhooks",
  setup: [
    "In the WorkOS dashboard, open Webhooks and create an endpoint with the URL of this source.",
    "Choose the events, for example `user.created`.",
    "Copy the signing secret of the endpoint, and enter it here as `webhook_secret_key`."
  ]
}
