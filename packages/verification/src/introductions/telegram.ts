import type { Introduction } from "./Introduction.ts"

export const telegram: Introduction = {
  name: "Telegram",
  description: "Messages and updates of a bot.",
  documentation: "https://core.telegram.org/bots/api#setwebhook",
  setup: [
    "Make up a secret token of letters, digits, `_` and `-`, and enter it here as `api_key`.",
    "Call `setWebhook` of the Bot API with the token of your bot, the URL of this source as `url`, and the same `secret_token`."
  ]
}
