import { Schema } from "effect"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { type Evaluate, memberOf, stepKind } from "../StepKind.ts"

const units = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const

/** The output of a step that somebody has decided. */
export const decided = (approves: boolean, comment: string | null, userId: string | null, at: number) => ({
  decision: approves ? "approved" : "rejected",
  comment,
  decided_by_user_id: userId,
  decided_at: new Date(at).toISOString()
})

export const portsDecided = (approves: boolean): ReadonlyArray<string> => [approves ? "out" : "rejected"]

/** Its output when nobody decides in time. */
const undecided = { decision: null, comment: null, decided_by_user_id: null, decided_at: null }

/** Waits for a decision of a person, for a limited time. Nothing stays in memory meanwhile. */
export const waitKind = stepKind({
  kind: "wait",
  config: Schema.Struct({
    for: Schema.Literal("approval"),
    amount: Schema.Int.annotate({ description: "How long to wait at most, in `unit`; at most 31 days" }),
    unit: Schema.Literals(["minutes", "hours", "days"])
  }),
  settings: [],
  resource: null,
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: () => [],
  output: objectOf(...Object.keys(undecided), "released_at"),
  ports: () => ["out", "rejected", "timed_out"],
  portRequired: false,
  portsOf: (output) => {
    const decision = memberOf(output, "decision")
    return decision === null ? ["timed_out"] : portsDecided(decision !== "rejected")
  },
  sample: { ...undecided, decision: "approved" },
  compile(_, { amount, unit }, compiler): Evaluate {
    const longest = amount * units[unit]
    if (!(longest > 0 && longest <= limits.longestDelay)) {
      compiler.issue("STEP_CONFIG_INVALID", "config.amount", "is more than nothing, and at most 31 days")
    }
    return ({ time }) => ({ kind: "waits", until: time.now + longest, output: undecided, portsLate: ["timed_out"] })
  }
})
