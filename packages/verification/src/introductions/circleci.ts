import type { Introduction } from "./Introduction.ts"

export const circleci: Introduction = {
  name: "CircleCI",
  description: "Finished workflows and jobs.",
  documentation: "https://circleci.com/docs/webhooks/",
  setup: [
    "In the project's settings in CircleCI, open Webhooks and add a webhook with the URL of this source as receiver URL.",
    "Set a secret token, and enter the same one here as `webhook_secret_key`.",
    "Choose the events: finished workflows, finished jobs, or both."
  ]
}
