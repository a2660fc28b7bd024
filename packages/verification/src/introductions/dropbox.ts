import type { Introduction } from "./Introduction.ts"

export const dropbox: Introduction = {
  name: "Dropbox",
  description: "Notices that files of a user have changed.",
  documentation: "https://www.dropbox.com/developers/reference/webhooks",
  setup: [
    "In the App Console of Dropbox, open your app, copy its App secret, and enter it here as `webhook_secret_key`.",
    "Add the URL of this source as Webhook URI. Dropbox checks it at once, and the gateway answers its challenge."
  ]
}
