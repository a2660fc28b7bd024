import { Effect, Result, Schedule, type Schema } from "effect"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { loadTransformation } from "@tidegate/storage/control/Transformations"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { failed } from "../RunWork.ts"
import { requestOf } from "./Envelope.ts"

/**
 * Runs a transformation in the sandbox, as a connection does: with its current variables, and with the code that it had when the
 * run began.
 */
export const makeTransformationStep = Effect.gen(function* () {
  const sandbox = yield* Sandbox
  const stored = yield* Effect.context<Database | Secrets>()
  return Effect.fnUntraced(function* (effect: StepEffect, run: DueRun): Effect.fn.Return<Outcome> {
    const id = effect.step.step.resource_id ?? ""
    const loaded = yield* Effect.result(loadTransformation(run.team_id, id, effect.step.code)).pipe(
      Effect.provideContext(stored)
    )
    // Fails closed: code never runs without its variables.
    if (Result.isFailure(loaded)) return failed("INTERNAL_ERROR", "the transformation cannot be read")
    if (loaded.success === null) return failed("RESOURCE_DELETED", "the transformation was deleted, or its code")
    const { code, code_hash, env, isolation } = loaded.success
    const given = requestOf(effect, run)
    if (Result.isFailure(given)) return { kind: "failed", error: given.failure }
    const call = sandbox.run({
      teamId: run.team_id,
      code,
      codeHash: code_hash,
      isolation,
      env,
      request: given.success,
      context: {
        connection_id: null,
        source_id: run.source_id,
        destination_id: null,
        request_id: run.request_id,
        team_id: run.team_id,
        timestamp: run.ingested_at.toISOString()
      }
    })
    // If no sandbox is available now, the code is not to blame. The step's timeout ends the retries.
    const { error, request } = yield* Effect.orDie(Effect.retry(call, Schedule.spaced("250 millis")))
    if (request === null) return failed(error?.code ?? "RUNTIME_ERROR", error?.message ?? "the code has failed")
    const { body, headers, method, parsed_query, path } = request
    const output = { headers, body, query: parsed_query, path, method } as Schema.JsonObject
    return { kind: "succeeded", output, ports: ["out"] }
  })
})
