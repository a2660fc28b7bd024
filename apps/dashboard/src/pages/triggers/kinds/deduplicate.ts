import { neededKey, type TriggerKind } from "../TriggerKind.ts"

export const deduplicate: TriggerKind = {
  name: "deduplicate",
  title: "Leave out what was delivered twice",
  about: "A run with the value of an earlier run carries nothing out. It ends as a duplicate.",
  excludes: [],
  most: 1,
  fields: [
    neededKey("A run without a value there is carried out."),
    {
      name: "window_ms",
      label: "Within",
      kind: "duration",
      fresh: 86_400_000,
      help: "From 1 second to 7 days after the first run. Duplicates do not extend it."
    }
  ]
}
