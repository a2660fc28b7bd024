import type { Introduction } from "./Introduction.ts"

export const twilio: Introduction = {
  name: "Twilio",
  description: "Messages, calls and their states.",
  documentation: "https://www.twilio.com/docs/usage/webhooks",
  setup: [
    "In the Twilio console, copy the Auth Token of your account, and enter it here as `webhook_secret_key`.",
    "In the configuration of the phone number or of the messaging service, enter the URL of this source as webhook for incoming messages or calls, with the method POST.",
    "Enter exactly the URL that is shown here: Twilio signs it, too."
  ]
}
