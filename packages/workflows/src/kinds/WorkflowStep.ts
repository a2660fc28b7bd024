import { Schema } from "effect"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import type { Json } from "@tidegate/model/Rule"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { memberOf, stepKind, type StepError } from "../StepKind.ts"

const hour = 3_600_000
const defaultHours = 24

/** The output of a step whose run has not ended in time. */
const nothing = { run_id: null, workflow_id: null, outcome: null, result: null } as const

/** How long (ms) a step waits for its run. */
export const longestCall = (config: unknown): number =>
  ((config as { readonly hours?: number }).hours ?? defaultHours) * hour

export const waitingForRun = (until: number) => ({
  kind: "waits" as const,
  until,
  output: nothing,
  portsLate: ["timed_out"]
})

/** A run that a step has begun, at its end. `result`: the output of its last step. */
export interface EndedRun {
  readonly run_id: string
  readonly workflow_id: string
  readonly outcome: string
  readonly error: { readonly code: string; readonly message: string } | null
  readonly result: Json
}

/** The signal of the end of a run. A run that failed or was cancelled fails the step. */
export const endedAs = ({ error, result, ...run }: EndedRun) => {
  const output = { ...run, result }
  const failure: StepError | null = error === null ? null : { ...error, final: true }
  const size = jsonLengthWithin(output, limits.valueLength)
  const tooLarge = { code: "OUTPUT_TOO_LARGE", message: `the result is longer than ${limits.valueLength} characters` }
  const fault = failure ?? (size === null ? tooLarge : null)
  return fault === null
    ? { output, ports: ["out"], size: size! }
    : { output: { ...nothing, ...run }, ports: ["out"], error: fault }
}

/** Calls another workflow of the team: it begins a run of it, and continues with its result when it has ended. */
export const workflowKind = stepKind({
  kind: "workflow",
  config: Schema.Struct({
    hours: Schema.optionalKey(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 744 })).annotate({
        description: "How long to wait for the run at most, in hours (default: 24)"
      })
    )
  }),
  settings: ["on_error", "compensate"],
  resource: "wfl_",
  callsAction: false,
  notTaken: "path_not_taken",
  inline: false,
  inputs: () => ["input"],
  output: objectOf(...Object.keys(nothing), "released_at"),
  ports: ["out", "timed_out"],
  portRequired: false,
  portsOf: (output) => [memberOf(output, "run_id") === null ? "timed_out" : "out"],
  sample: () => ({ run_id: "wfr_sample", workflow_id: "wfl_sample", outcome: "completed", result: {} }),
  compile: null
})
