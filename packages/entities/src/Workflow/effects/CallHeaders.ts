import { Effect } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { storedHeaders, type Values } from "@tidegate/model/Message"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { type CallTrace, traceHeaders, Tracing } from "@tidegate/telemetry/Tracing"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { Loops } from "../../Loops.ts"

const has = (headers: ReadonlyArray<string>, name: string): boolean =>
  headers.some((one, i) => i % 2 === 0 && one.toLowerCase() === name)

/** The place in a trace of the calls of this step. */
export const stepTrace: Effect.Effect<(effect: StepEffect, run: DueRun) => CallTrace | null> = Effect.map(
  Tracing,
  ({ isOn, stepCall }) =>
    (effect, run) =>
      isOn ? stepCall(storedHeaders(run), run.request_id, run, effect.step.step.id) : null
)

/** The headers of a message, with the place in the trace. */
export const tracedValues = (trace: CallTrace | null, values: Values): Values => {
  if (trace === null) return values
  const { traceparent = [], tracestate, ...rest } = values
  const given = (typeof traceparent === "string" ? [traceparent] : traceparent).flatMap((one) => ["traceparent", one])
  const [, written] = traceHeaders(trace, given)
  return {
    ...rest,
    traceparent: written!,
    ...(tracestate === undefined || !trace.isSenders ? {} : { tracestate })
  }
}

/**
 * Returns a finished call's headers (a flat list of names and values) with those that each call of a step has. An idempotency key and a
 * trace that the user wrote are kept.
 */
export const makeCallHeaders = Effect.gen(function* () {
  const loops = yield* Loops
  const traceOf = yield* stepTrace
  return (headers: ReadonlyArray<string>, effect: StepEffect, run: DueRun, key: string): ReadonlyArray<string> => [
    ...(has(headers, "traceparent") ? headers : traceHeaders(traceOf(effect, run), headers)),
    ...(has(headers, "idempotency-key") ? [] : ["idempotency-key", key]),
    "x-gateway-workflow-id",
    String(effect.context.workflow["id"]),
    "x-gateway-run-id",
    run.id,
    "x-gateway-step-id",
    effect.step.step.id,
    loopHeader,
    loops.next(storedHeaders(run), run.request_id)
  ]
})
