import { groupKey, type TriggerKind } from "../TriggerKind.ts"

export const concurrency: TriggerKind = {
  name: "concurrency",
  title: "Limit how many run at once",
  about: "Runs beyond the limit wait, and begin in the order of their arrival as others end.",
  excludes: [],
  most: 1,
  fields: [
    {
      name: "limit",
      label: "Runs at once",
      kind: "number",
      fresh: 1,
      min: 1,
      max: 1_000,
      help: "From 1 to 1,000 runs that have begun and not ended."
    },
    groupKey("The limit holds for the runs with the same value there. Empty: for all runs of the workflow.")
  ]
}
