import { Effect, Result } from "effect"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { type NotStored, storeByStep } from "@tidegate/storage/workflows/WorkflowValues"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { portsStored, storeOperation } from "@tidegate/workflows/kinds/StoreStep"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import { unreached } from "./StoreCall.ts"

const refused: { readonly [why in NotStored]: StepError } = {
  full: { code: "ACTION_FAILED", message: "the workflow keeps as many values as it may: delete some", final: true },
  gone: { code: "RESOURCE_DELETED", message: "the workflow was deleted", final: true },
  not_a_number: { code: "INPUT_INVALID", message: "key: its value is no number, or the sum is none", final: true }
}

/** Reads or changes a value of the workflow. A change is made once for `key`, the key of the step. */
export const makeStoreStep = Effect.map(Effect.context<Database>(), (stored) =>
  Effect.fnUntraced(function* (
    { context, inputs, step }: StepEffect,
    { team_id }: DueRun,
    key: string
  ): Effect.fn.Return<Outcome> {
    const operation = storeOperation(step.step.config, inputs.values)
    if (Result.isFailure(operation)) return { kind: "failed", error: operation.failure }
    const of = { team_id, workflow_id: String(context.workflow["id"]) }
    const done = yield* storeByStep(of, operation.success, key).pipe(
      Effect.provideContext(stored),
      Effect.catchTag("SqlError", () => Effect.succeed(null))
    )
    if (done === null) return { kind: "failed", error: unreached }
    if (typeof done === "string") return { kind: "failed", error: refused[done] }
    const output = { key: operation.success.key, ...done }
    return { kind: "succeeded", output, ports: portsStored(done.conflict) }
  })
)
