import type { Introduction } from "./Introduction.ts"

export const zoom: Introduction = {
  name: "Zoom",
  description: "Meetings, recordings and users.",
  documentation: "https://developers.zoom.us/docs/api/webhooks/",
  setup: [
    "In the Zoom App Marketplace, open your app. Copy the Secret Token of its event subscriptions, and enter it here as `webhook_secret_key`.",
    "Add an event subscription with the URL of this source as endpoint, and choose the events, for example the end of a meeting.",
    "Press Validate. The gateway answers the validation, so save the source with its secret first."
  ]
}
