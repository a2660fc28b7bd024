import type { Introduction } from "./Introduction.ts"

export const meta: Introduction = {
  name: "Meta",
  description: "Events of Facebook, Instagram and other products of a Meta app.",
  documentation: "https://developers.facebook.com/docs/graph-api/webhooks",
  setup: [
    "In the dashboard of your Meta app, copy the App Secret from its basic settings, and enter it here as `webhook_secret_key`.",
    "Make up a verify token, and enter it here as `verify_token`.",
    "In the webhook settings of the product, enter the URL of this source as Callback URL, and the same verify token. Meta checks both at once, so save the source first.",
    "Subscribe to the fields that you need."
  ]
}
