import type { Introduction } from "./Introduction.ts"

export const trello: Introduction = {
  name: "Trello",
  description: "Changes of boards, lists and cards.",
  documentation: "https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/",
  setup: [
    "Copy the secret of your Trello API key, and enter it here as `webhook_secret_key`.",
    "Create a webhook by Trello's API (`POST /1/webhooks`), with the URL of this source as `callbackURL` and the id of a board, list or card as `idModel`. Trello checks the URL at once.",
    "Enter exactly the URL that is shown here: Trello signs it, too."
  ]
}
