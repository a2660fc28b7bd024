import type { Introduction } from "./Introduction.ts"

export const whatsapp: Introduction = {
  name: "WhatsApp",
  description: "Messages and their states on the WhatsApp Business Platform.",
  documentation: "https://developers.facebook.com/docs/whatsapp/cloud-api/guides/set-up-webhooks",
  setup: [
    "In the dashboard of your Meta app, copy the App Secret from its basic settings, and enter it here as `webhook_secret_key`.",
    "Make up a verify token, and enter it here as `verify_token`.",
    "In the configuration of WhatsApp, enter the URL of this source as Callback URL, and the same verify token. Meta checks both at once, so save the source first.",
    "Subscribe to the field `messages`."
  ]
}
