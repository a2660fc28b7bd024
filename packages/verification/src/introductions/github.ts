import type { Introduction } from "./Introduction.ts"

export const github: Introduction = {
  name: "GitHub",
  description: "Pushes, pull requests, issues and releases of repositories and organisations.",
  documentation: "https://docs.github.com/en/webhooks",
  setup: [
    "In the settings of the repository or the organisation, open Webhooks and add a webhook.",
    "Enter the URL of this source as Payload URL, and choose `application/json` as content type.",
    "Make up a long random Secret, and enter the same one here as `webhook_secret_key`.",
    "Choose the events, for example only pushes. GitHub sends a `ping` first."
  ]
}
