import { loopHeader } from "@tidegate/model/HeaderRules"
import { storedHeaders } from "@tidegate/model/Message"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Loops } from "../../Loops.ts"

/** What every call of a step says of itself, as flat headers. */
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

/** The headers of a call that is complete. A key that somebody has written themselves is theirs. */
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
