import type { TriggerKind } from "../TriggerKind.ts"

export const answer: TriggerKind = {
  name: "answer",
  title: "Answer the sender",
  about: "The sender of a request waits for the output of a step, which is its answer.",
  excludes: ["debounce", "batch"],
  needsSource: true,
  most: 1,
  fields: [
    { name: "step_id", label: "Step", kind: "step", fresh: null, help: "The step whose output is the answer." },
    {
      name: "timeout_ms",
      label: "The sender waits at most",
      kind: "duration",
      fresh: 10_000,
      help: "From 100 milliseconds to 30 seconds. Then the source answers as usual, and the run goes on."
    }
  ]
}
