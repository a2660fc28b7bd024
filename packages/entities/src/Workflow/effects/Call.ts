import type { Effect } from "effect"
import type * as Calls from "@tidegate/actions/Call"
import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import type { Json } from "@tidegate/model/Rule"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { StepError } from "@tidegate/workflows/StepKind"

/** A step whose call is being made. */
export interface Call {
  readonly effect: StepEffect
  readonly run: DueRun
  /** The idempotency key: the same for every attempt, also after a crash. */
  readonly key: string
  /** Unix milliseconds. */
  readonly now: number
  /** Has to be called with a target's answer and its verdict before the call ends. */
  readonly heard: (answer: Answer, verdict: Verdict) => Effect.Effect<void>
}

/** Makes calls of one kind, and returns the output. */
export type Carry<C extends Calls.Call> = (call: C, of: Call) => Effect.Effect<Json, StepError>
