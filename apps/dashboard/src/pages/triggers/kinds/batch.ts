import { groupKey, type TriggerKind } from "../TriggerKind.ts"

export const batch: TriggerKind = {
  name: "batch",
  title: "Carry out many requests in one run",
  about: "The first of the runs that come soon after each other has the requests of all of them, in trigger.batch.",
  excludes: ["debounce", "answer"],
  most: 1,
  fields: [
    groupKey("Requests with the same value there are in one batch. Empty: all requests of the workflow are."),
    {
      name: "window_ms",
      label: "The batch is open for",
      kind: "duration",
      fresh: 60_000,
      help: "From 1 second to 1 hour after its first request. Then its run begins."
    },
    {
      name: "max_count",
      label: "Requests in a batch",
      kind: "number",
      fresh: 100,
      min: 2,
      max: 500,
      help: "From 2 to 500. A batch that has so many, or 512 KiB, begins at once."
    }
  ]
}
