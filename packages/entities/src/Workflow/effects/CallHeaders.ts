import type { DueRun } from "@tidegate/storage/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { hopOf } from "./Envelope.ts"

/** What every call of a step says of itself, as flat headers. */
export const callHeaders = (effect: StepEffect, run: DueRun): ReadonlyArray<string> => [
  "x-gateway-workflow-id",
  String(effect.context.workflow["id"]),
  "x-gateway-run-id",
  run.id,
  "x-gateway-step-id",
  effect.step.step.id,
  "x-gateway-hop",
  String(hopOf(run) + 1)
]

const has = (headers: ReadonlyArray<string>, name: string): boolean =>
  headers.some((one, i) => i % 2 === 0 && one.toLowerCase() === name)

/** The headers of a call that is complete. A key that somebody has written themselves is theirs. */
export const withCallHeaders = (
  headers: ReadonlyArray<string>,
  effect: StepEffect,
  run: DueRun,
  key: string
): ReadonlyArray<string> => [
  ...headers,
  ...(has(headers, "idempotency-key") ? [] : ["idempotency-key", key]),
  ...callHeaders(effect, run)
]
