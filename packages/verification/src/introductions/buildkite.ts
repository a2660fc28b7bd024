import type { Introduction } from "./Introduction.ts"

export const buildkite: Introduction = {
  name: "Buildkite",
  description: "Builds, jobs and agents.",
  documentation: "https://buildkite.com/docs/apis/webhooks",
  setup: [
    "In the notification services of your Buildkite organisation, add a webhook with the URL of this source.",
    "Copy its token, and enter it here as `webhook_secret_key`. Choose that an HMAC signature is sent: the token itself is accepted, too, but is less safe.",
    "Choose the events, for example `build.finished`."
  ]
}
