import type { Introduction } from "./Introduction.ts"

export const deepgram: Introduction = {
  name: "Deepgram",
  description: "Finished transcriptions.",
  documentation: "https://developers.deepgram.com/docs/callback",
  setup: [
    "In the Deepgram console, copy the identifier of the API key that makes the calls (not the key itself), and enter it here as `api_key`.",
    "Send the URL of this source as `callback` when you request a transcription."
  ]
}
