import { loopHeader } from "@tidegate/model/HeaderRules"
import { storedHeaders } from "@tidegate/model/Message"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Loops } from "../../Loops.ts"

/** The headers that each call of a step has, as a flat list of names and values. */
const callHeaders = (effect: StepEffect, run: DueRun, loops: Loops): ReadonlyArray<string> => [
  "x-gateway-workflow-id",
  String(effect.context.workflow["id"]),
  "x-gateway-run-id",
  run.id,
  "x-gateway-step-id",
  effect.step.step.id,
  loopHeader,
  loops.next(storedHeaders(run), run.request_id)
]

const has = (headers: ReadonlyArray<string>, name: string): boolean =>
  headers.some((one, i) => i % 2 === 0 && one.toLowerCase() === name)

/** Adds these headers to a finished call. An idempotency key that the user wrote is kept. */
export const withCallHeaders = (
  headers: ReadonlyArray<string>,
  effect: StepEffect,
  run: DueRun,
  key: string,
  loops: Loops
): ReadonlyArray<string> => [
  ...headers,
  ...(has(headers, "idempotency-key") ? [] : ["idempotency-key", key]),
  ...callHeaders(effect, run, loops)
]
