import type { Introduction } from "./Introduction.ts"

export const fusionauth: Introduction = {
  name: "FusionAuth",
  description: "Users, logins and other events of FusionAuth.",
  documentation: "https://fusionauth.io/docs/extend/events-and-webhooks/",
  setup: [
    "In FusionAuth, create a key in the key master, or choose one, with which webhooks are signed.",
    "Enter its HMAC secret here as `webhook_secret_key`, or the public key of a key pair as `public_key`.",
    "In the settings, add a webhook with the URL of this source, choose the events, and sign them with that key. Switch the events on in the tenant as well."
  ]
}
