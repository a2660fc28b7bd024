import type { Introduction } from "./Introduction.ts"

export const cursor: Introduction = {
  name: "Cursor",
  description: "The states of Cursor's background agents.",
  documentation: "https://cursor.com/docs",
  setup: [
    "Make up a long random secret, and enter it here as `webhook_secret_key`.",
    "When you start an agent by Cursor's API, send the URL of this source and the same secret in the member `webhook`."
  ]
}
