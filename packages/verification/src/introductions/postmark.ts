import type { Introduction } from "./Introduction.ts"

export const postmark: Introduction = {
  name: "Postmark",
  description: "Deliveries, bounces and incoming e-mail.",
  documentation: "https://postmarkapp.com/developer/webhooks/webhooks-overview",
  setup: [
    "Make up a user name and a password, and enter them here as `username` and `password`.",
    "In the webhook settings of a message stream, add a webhook with the URL of this source, and enter the same user name and password as HTTP authentication. For incoming e-mail, write them into the URL.",
    "Choose the events, for example bounces."
  ]
}
