import type { Introduction } from "./Introduction.ts"

export const webflow: Introduction = {
  name: "Webflow",
  description: "Form submissions, orders and changes of sites.",
  documentation: "https://developers.webflow.com/data/docs/working-with-webhooks",
  setup: [
    "Create a webhook by Webflow's API with an app, with the URL of this source as `url` and a `triggerType`, for example `form_submission`.",
    "The webhook is signed with the client secret of the app: enter it here as `webhook_secret_key`."
  ]
}
