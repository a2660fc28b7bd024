import type { Introduction } from "./Introduction.ts"

export const heroku: Introduction = {
  name: "Heroku",
  description: "Releases, builds and dynos of Heroku apps.",
  documentation: "https://devcenter.heroku.com/articles/app-webhooks",
  setup: [
    "Add a webhook with `heroku webhooks:add`, or in the app's dashboard, with the URL of this source and the entities to watch, for example `api:release`.",
    "Heroku shows the secret once, when you create the webhook, unless you set one: enter it here as `webhook_secret_key`."
  ]
}
