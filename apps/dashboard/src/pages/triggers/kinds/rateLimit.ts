import type { TriggerKind } from "../TriggerKind.ts"

export const rateLimit: TriggerKind = {
  name: "rate_limit",
  title: "Limit how many begin in a period",
  about: "Runs begin evenly spread over the period. The others wait in the order of their arrival.",
  excludes: [],
  most: 1,
  fields: [
    {
      name: "count",
      label: "Runs",
      kind: "number",
      fresh: 60,
      min: 1,
      max: 100_000,
      help: "From 1 to 100,000, and at most 100 a second."
    },
    {
      name: "period",
      label: "In each",
      kind: "choice",
      fresh: "minute",
      choices: [
        ["second", "Second"],
        ["minute", "Minute"],
        ["hour", "Hour"],
        ["day", "Day"]
      ],
      help: "The limit holds across all processes and restarts."
    }
  ]
}
