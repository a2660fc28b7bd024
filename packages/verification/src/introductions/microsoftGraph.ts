import type { Introduction } from "./Introduction.ts"

export const microsoftGraph: Introduction = {
  name: "Microsoft Graph",
  description: "Change notifications of mail, calendars, files and other resources.",
  documentation: "https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks",
  setup: [
    "Make up a long random client state of at most 128 characters, and enter it here as `api_key`.",
    "Create a subscription by the Graph API (`POST /subscriptions`), with the URL of this source as `notificationUrl`, the same `clientState`, a `resource` and a `changeType`. The gateway answers the validation.",
    "Renew the subscription before it expires: Microsoft Graph ends it then."
  ]
}
