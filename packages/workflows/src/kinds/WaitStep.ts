import { Schema } from "effect"
import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { type Evaluate, memberOf, stepKind } from "../StepKind.ts"

const units = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const

/** Who decided. `name`: as a person who used a link gave it. */
export interface DecidedBy {
  readonly by: "user" | "api_key" | "link"
  readonly userId: string | null
  readonly name: string | null
}

/** The output of a step that somebody has decided. */
export const decided = (approves: boolean, comment: string | null, { by, name, userId }: DecidedBy, at: number) => ({
  decision: approves ? ("approved" as const) : ("rejected" as const),
  comment,
  decided_by: by,
  decided_by_user_id: userId,
  decided_by_name: name,
  decided_at: new Date(at).toISOString()
})

export const portsDecided = (approves: boolean): ReadonlyArray<string> => [approves ? "out" : "rejected"]

/** What somebody sends to the URL of a step that waits for it. */
export interface ReceivedCallback {
  readonly method: string
  readonly headers: { readonly [name: string]: Json }
  readonly query: { readonly [name: string]: Json }
  readonly body: Json
}

/** The signal of a callback: the output of its step, with its size. */
export const receivedAs = (callback: ReceivedCallback, at: number) => {
  const output = { ...callback, received_at: new Date(at).toISOString() }
  return { output, ports: ["out"], size: jsonLengthWithin(output, limits.valueLength) ?? limits.valueLength }
}

/** By what a step waits for: its ports, its output when nothing comes in time, and its output in tests. */
const awaited = {
  approval: {
    ports: ["out", "rejected", "timed_out"],
    nothing: {
      decision: null,
      comment: null,
      decided_by: null,
      decided_by_user_id: null,
      decided_by_name: null,
      decided_at: null
    },
    sample: { decision: "approved" }
  },
  callback: {
    ports: ["out", "timed_out"],
    nothing: { method: null, headers: null, query: null, body: null, received_at: null },
    sample: { method: "POST", headers: {}, query: {}, body: {}, received_at: "2026-01-01T00:00:00.000Z" }
  }
} as const

/** What steps of kind `wait` wait for. */
export type Awaited = keyof typeof awaited

/** What a step waits for; null: it is of another kind. */
export const awaitedBy = ({ config, kind }: { readonly kind: string; readonly config?: unknown }): Awaited | null =>
  kind === "wait" ? ((config as { readonly for: Awaited }).for ?? null) : null

/** Waits for a decision of a person, or for a call from outside, for a limited time. Nothing stays in memory meanwhile. */
export const waitKind = stepKind({
  kind: "wait",
  config: Schema.Struct({
    for: Schema.Literals(["approval", "callback"]),
    amount: Schema.Int.annotate({ description: "How long to wait at most, in `unit`; at most 31 days" }),
    unit: Schema.Literals(["minutes", "hours", "days"])
  }),
  settings: [],
  resource: null,
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: () => [],
  output: objectOf(...Object.values(awaited).flatMap(({ nothing }) => Object.keys(nothing)), "released_at"),
  ports: (config) => awaited[config.for].ports,
  portRequired: false,
  portsOf: (output) => {
    const decision = memberOf(output, "decision")
    if (decision === null || memberOf(output, "received_at") === null) return ["timed_out"]
    return portsDecided(decision !== "rejected")
  },
  sample: (config) => ({ ...awaited[config.for].nothing, ...awaited[config.for].sample }),
  compile(_, { amount, for: what, unit }, compiler): Evaluate {
    const longest = amount * units[unit]
    if (!(longest > 0 && longest <= limits.longestDelay)) {
      compiler.issue("STEP_CONFIG_INVALID", "config.amount", "is more than nothing, and at most 31 days")
    }
    const output = awaited[what].nothing
    return ({ time }) => ({ kind: "waits", until: time.now + longest, output, portsLate: ["timed_out"] })
  }
})
