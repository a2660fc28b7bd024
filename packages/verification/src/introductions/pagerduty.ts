import type { Introduction } from "./Introduction.ts"

export const pagerduty: Introduction = {
  name: "PagerDuty",
  description: "Incidents and services.",
  documentation: "https://developer.pagerduty.com/docs/webhooks/v3-overview/",
  setup: [
    "In PagerDuty, add a generic webhook (version 3) with the URL of this source, for a service, a team or the account.",
    "Choose the events, for example `incident.triggered`.",
    "PagerDuty shows the secret of the subscription once, when you create it: enter it here as `webhook_secret_key`."
  ]
}
