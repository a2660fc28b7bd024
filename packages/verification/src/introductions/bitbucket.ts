import type { Introduction } from "./Introduction.ts"

export const bitbucket: Introduction = {
  name: "Bitbucket",
  description: "Pushes, pull requests and issues of Bitbucket repositories.",
  documentation: "https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/",
  setup: [
    "In the settings of the repository, open Webhooks and add a webhook with the URL of this source.",
    "Set a Secret, and enter the same one here as `webhook_secret_key`.",
    "Choose the triggers, for example repository pushes, and save."
  ]
}
