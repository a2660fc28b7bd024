import type { Introduction } from "./Introduction.ts"

export const okta: Introduction = {
  name: "Okta",
  description: "Users, groups and sign-ins.",
  documentation: "https://developer.okta.com/docs/concepts/event-hooks/",
  setup: [
    "In the Okta Admin Console, open Workflow, Event Hooks, and create one with the URL of this source.",
    "Set an authentication field (usually `Authorization`) and a long random authentication secret. Enter the field here as `header_key`, and the secret as `api_key`.",
    "Subscribe to the events, and verify the endpoint. The gateway answers the verification, so save the source first."
  ]
}
