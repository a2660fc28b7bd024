import type { Introduction } from "./Introduction.ts"

export const docusign: Introduction = {
  name: "Docusign",
  description: "Envelopes and their recipients.",
  documentation: "https://developers.docusign.com/platform/webhooks/connect/",
  setup: [
    "In the Docusign administration, open Connect. Add an HMAC key there, and enter it here as `webhook_secret_key`. It is shown once.",
    "Add a configuration with the URL of this source, choose the events, and include the HMAC signature."
  ]
}
