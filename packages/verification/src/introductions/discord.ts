import type { Introduction } from "./Introduction.ts"

export const discord: Introduction = {
  name: "Discord interactions",
  description: "Commands and components of a Discord application.",
  documentation: "https://docs.discord.com/developers/interactions/overview",
  setup: [
    "In the Discord Developer Portal, open your application, copy its Public Key, and enter it here as `public_key`.",
    "Enter the URL of this source as Interactions Endpoint URL, and save. Discord checks it at once, so save the source first."
  ]
}
