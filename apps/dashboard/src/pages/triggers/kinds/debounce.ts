import { groupKey, type TriggerKind } from "../TriggerKind.ts"

export const debounce: TriggerKind = {
  name: "debounce",
  title: "Carry out only the last one",
  about: "A run waits. If another one comes meanwhile, it takes the place of the first, and waits in its turn.",
  excludes: ["batch", "answer"],
  most: 1,
  fields: [
    groupKey("Runs with the same value there belong together. Empty: all runs of the workflow do."),
    { name: "wait_ms", label: "Wait", kind: "duration", fresh: 30_000, help: "From 1 second to 1 hour." },
    {
      name: "max_wait_ms",
      label: "The first one waits at most",
      kind: "duration",
      fresh: null,
      isOptional: true,
      help: "Up to 24 hours, and not less than the wait. Empty: ten times the wait."
    }
  ]
}
