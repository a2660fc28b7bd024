import type { Introduction } from "./Introduction.ts"

export const mailgun: Introduction = {
  name: "Mailgun",
  description: "Deliveries, bounces and incoming e-mail.",
  documentation: "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhooks",
  setup: [
    "In Mailgun, open the webhooks of the sending domain, and add one with the URL of this source for each event. For incoming e-mail, forward a route to the URL.",
    "Copy the HTTP webhook signing key of your account, and enter it here as `webhook_secret_key`."
  ]
}
