import type { Introduction } from "./Introduction.ts"

export const xero: Introduction = {
  name: "Xero",
  description: "Changes of contacts and invoices.",
  documentation: "https://developer.xero.com/documentation/guides/webhooks/overview/",
  setup: [
    "In the Xero developer portal, open the webhooks of your app, choose the events, and enter the URL of this source.",
    "Copy the webhooks key, and enter it here as `webhook_secret_key`.",
    "Let Xero send its intent to receive: it checks that wrong signatures are refused and right ones accepted."
  ]
}
