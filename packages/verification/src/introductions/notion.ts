import type { Introduction } from "./Introduction.ts"

export const notion: Introduction = {
  name: "Notion",
  description: "Changes of pages, databases and comments.",
  documentation: "https://developers.notion.com/reference/webhooks",
  setup: [
    "Create this source without a secret, with `auth_type` HMAC.",
    "In the settings of your Notion integration, create a webhook subscription with the URL of this source.",
    "Notion sends a verification token. The gateway keeps it as `webhook_secret_key`. Open the request that has arrived, and copy the token of its body into Notion.",
    "Choose the events of the subscription."
  ]
}
