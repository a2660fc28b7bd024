import type { Introduction } from "./Introduction.ts"

export const twitch: Introduction = {
  name: "Twitch",
  description: "Streams, followers and other events of EventSub.",
  documentation: "https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
  setup: [
    "Make up a secret of 10 to 100 ASCII characters, and enter it here as `webhook_secret_key`.",
    "Create a subscription by the Twitch API (`POST /helix/eventsub/subscriptions`), with the transport `webhook`, the URL of this source as `callback`, and the same `secret`. The gateway answers the challenge."
  ]
}
