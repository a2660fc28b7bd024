import type { Introduction } from "./Introduction.ts"

export const elevenlabs: Introduction = {
  name: "ElevenLabs",
  description: "Conversations and transcriptions.",
  documentation: "https://elevenlabs.io/docs/overview/administration/webhooks",
  setup: [
    "In the settings of ElevenLabs, open the webhooks and create one with the URL of this source, authenticated by HMAC.",
    "ElevenLabs shows the shared secret once, when you create the webhook: enter it here as `webhook_secret_key`.",
    "Choose in the settings of your agents or of your workspace which events go to the webhook."
  ]
}
