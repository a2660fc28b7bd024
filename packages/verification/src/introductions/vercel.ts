import type { Introduction } from "./Introduction.ts"

export const vercel: Introduction = {
  name: "Vercel",
  description: "Deployments and projects.",
  documentation: "https://vercel.com/docs/webhooks",
  setup: [
    "In the settings of your Vercel team, open Webhooks and create one with the URL of this source.",
    "Choose the events, for example `deployment.succeeded`, and the projects.",
    "Vercel shows the secret once, when you create the webhook: enter it here as `webhook_secret_key`. Webhooks of an integration are signed with its client secret instead."
  ]
}
