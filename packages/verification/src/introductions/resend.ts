import type { Introduction } from "./Introduction.ts"

export const resend: Introduction = {
  name: "Resend",
  description: "E-mails and their delivery.",
  documentation: "https://resend.com/docs/dashboard/webhooks/introduction",
  setup: [
    "In the Resend dashboard, open Webhooks and add one with the URL of this source.",
    "Choose the events, for example `email.delivered`.",
    "Copy the signing secret of the webhook (`whsec_…`), and enter it here as `webhook_secret_key`."
  ]
}
