import { neededKey, type TriggerKind } from "../TriggerKind.ts"

export const priority: TriggerKind = {
  name: "priority",
  title: "Let important ones begin first",
  about: "Of the runs that wait because of the two limits above, those with the highest number at the key begin first.",
  excludes: [],
  needsOneOf: ["concurrency", "rate_limit"],
  most: 1,
  fields: [
    neededKey("Its number is from -100 to 100."),
    {
      name: "default",
      label: "Without a number there",
      kind: "number",
      fresh: 0,
      isOptional: true,
      min: -100,
      max: 100,
      help: "From -100 to 100. Empty: 0."
    }
  ]
}
