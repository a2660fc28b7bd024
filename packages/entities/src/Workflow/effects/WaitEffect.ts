import { Effect, Result } from "effect"
import { Sharding } from "effect/cluster"
import { compilingFilter } from "@tidegate/rules/Filter"
import { PatternBounds } from "@tidegate/rules/PatternBounds"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Database } from "@tidegate/storage/Database"
import { maxWaits, registerWait } from "@tidegate/storage/workflows/EventWaits"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { filterFault, longestWait, waitingFor } from "@tidegate/workflows/kinds/WaitStep"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { wakeUps } from "../../dispatch/WakeUps.ts"
import { shardOf } from "../../Shards.ts"
import { unreached } from "./StoreCall.ts"

/** The largest filter of a step that waits, as JSON, in characters: a source may have a thousand of them. */
const largestFilter = 8_192

const refused = {
  full: {
    code: "WAIT_LIMIT_REACHED",
    message: `at most ${maxWaits.source} steps wait at one source, and ${maxWaits.team} in a team`
  },
  gone: { code: "RESOURCE_DELETED", message: "the source was deleted", final: true }
} as const

const invalid = (message: string): StepError => ({ code: "INPUT_INVALID", message, final: true })

/** The filter of the step for its row; null: it has none. */
const filterOf = Effect.fnUntraced(function* ({
  inputs,
  step
}: StepEffect): Effect.fn.Return<Result.Result<string | null, StepError>> {
  const filter = inputs.values["filter"]
  const written = step.step.invocation_inputs?.["filter"]
  if (filter === undefined && written === undefined) return Result.succeed(null)
  const missing = inputs.warnings.find(({ code }) => code === "TEMPLATE_VALUE_MISSING")
  if (missing !== undefined) {
    const message = `${missing.field ?? "filter"}: its template stands for nothing, so that any request could match`
    return Result.fail({ code: "INPUT_REQUIRED", message, final: true })
  }
  const fault = filterFault(written, filter)
  if (fault !== null) return Result.fail(invalid(fault))
  const text = JSON.stringify(filter)
  if (text.length > largestFilter) {
    return Result.fail(invalid(`filter: is longer than ${largestFilter} characters of JSON`))
  }
  const compiled = yield* inSlices(
    compilingFilter(filter as { readonly body?: unknown }, { patterns: PatternBounds.written() })
  )
  return Result.isFailure(compiled)
    ? Result.fail(invalid(`filter.${compiled.failure.path}: ${compiled.failure.message}`))
    : Result.succeed(text)
})

/** Begins the wait of a step for a request. The request ends it by a signal (`Arrivals.ts`), which may come before this has ended. */
export const makeWaitStep = Effect.gen(function* () {
  const stored = yield* Effect.context<Database>()
  const sharding = yield* Sharding.Sharding
  const { arrive } = yield* wakeUps
  return Effect.fnUntraced(function* (effect: StepEffect, { id, team_id }: DueRun): Effect.fn.Return<Outcome> {
    const { context, startedAt, step } = effect
    const workflow_id = String(context.workflow["id"])
    const filter = yield* filterOf(effect)
    if (Result.isFailure(filter)) return { kind: "failed", error: filter.failure }
    const until = startedAt + longestWait(step.step.config as never)
    const registered = yield* registerWait({
      team_id,
      workflow_id,
      shard: shardOf(sharding, workflow_id),
      run_id: id,
      step_id: step.step.id,
      source_id: step.step.resource_id!,
      filter: filter.success,
      since: startedAt,
      until
    }).pipe(
      Effect.provideContext(stored),
      Effect.catchTag("SqlError", () => Effect.succeed(null))
    )
    if (registered === null) return { kind: "failed", error: unreached }
    if (registered !== "stored") return { kind: "failed", error: refused[registered] }
    // If it is lost, the poller finds the look for earlier requests.
    yield* Effect.forkDetach(arrive(workflow_id))
    return waitingFor("event", until)
  })
})
