import type { Introduction } from "./Introduction.ts"

export const launchdarkly: Introduction = {
  name: "LaunchDarkly",
  description: "Changes of flags, projects and environments.",
  documentation: "https://launchdarkly.com/docs/home/infrastructure/webhooks",
  setup: [
    "In the integrations of LaunchDarkly, add a webhook with the URL of this source.",
    "Choose that payloads are signed, and enter the secret here as `webhook_secret_key`.",
    "Write a policy if only some changes shall be sent."
  ]
}
