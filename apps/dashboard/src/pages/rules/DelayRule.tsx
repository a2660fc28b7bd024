import { Duration } from "../../parts/Duration.tsx"
import type { RuleKind } from "./Rule.ts"

export const delayRule: RuleKind<"delay"> = {
  type: "delay",
  title: "Delay",
  about: "Every event waits this long before its first attempt, at most a day.",
  fresh: { type: "delay", delay: 60_000 },
  Form: ({ change, rule }) => (
    <Duration
      label="Wait"
      ms={rule.delay}
      change={(delay) => change(delay === null ? null : { type: "delay", delay })}
    />
  )
}
