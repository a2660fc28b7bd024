import type { Introduction } from "./Introduction.ts"

export const gitlab: Introduction = {
  name: "GitLab",
  description: "Pushes, merge requests, issues and pipelines.",
  documentation: "https://docs.gitlab.com/user/project/integrations/webhooks/",
  setup: [
    "In the settings of the project or the group, open Webhooks and add one with the URL of this source.",
    "Make up a long random secret token, and enter the same one here as `api_key`. If you use GitLab's signing token instead, choose the type `STANDARD`.",
    "Choose the triggers, for example push events."
  ]
}
