import type { Introduction } from "./Introduction.ts"

export const sentry: Introduction = {
  name: "Sentry",
  description: "Issues, errors and alerts.",
  documentation: "https://docs.sentry.io/organization/integrations/integration-platform/webhooks/",
  setup: [
    "In the settings of your Sentry organisation, open the custom integrations and create an internal integration with the URL of this source as webhook URL.",
    "Choose the resources whose events are sent, for example `issue`.",
    "Copy the client secret of the integration, and enter it here as `webhook_secret_key`."
  ]
}
