import type { Introduction } from "./Introduction.ts"

export const discordEvents: Introduction = {
  name: "Discord events",
  description: "Webhook events of a Discord application, for example an installation.",
  documentation: "https://docs.discord.com/developers/events/webhook-events",
  setup: [
    "In the Discord Developer Portal, open your application, copy its Public Key, and enter it here as `public_key`.",
    "Open the page Webhooks of the application, and enter the URL of this source as endpoint. Discord checks it at once, so save the source first.",
    "Switch the events on, and choose them."
  ]
}
