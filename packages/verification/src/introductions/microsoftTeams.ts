import type { Introduction } from "./Introduction.ts"

export const microsoftTeams: Introduction = {
  name: "Microsoft Teams",
  description: "Messages that mention an outgoing webhook of a team.",
  documentation:
    "https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook",
  setup: [
    "In the apps of a team in Microsoft Teams, create an outgoing webhook with the URL of this source as callback URL.",
    "Teams shows the security token once, when you create the webhook: enter it here as `webhook_secret_key`.",
    "Mention the webhook by its name in a message. What the sender sees is the answer of this source."
  ]
}
