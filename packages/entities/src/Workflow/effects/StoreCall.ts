import { Effect } from "effect"
import type { StoreCall } from "@tidegate/actions/Call"
import type { Database } from "@tidegate/storage/Database"
import { deleteValue, increment, readValue, type Refused, setValue } from "@tidegate/storage/workflows/TeamValues"
import type { Json } from "@tidegate/model/Rule"
import type { StepError } from "@tidegate/workflows/StepKind"
import type { Carry } from "./Call.ts"

const refused: { readonly [why in Refused]: StepError } = {
  full: { code: "ACTION_FAILED", message: "the team keeps as many values as it may: delete some", final: true },
  not_a_number: { code: "INPUT_INVALID", message: "key: its value is no number, or the sum is none" }
}

export const unreached: StepError = { code: "ACTION_FAILED", message: "the database did not answer" }

/** Stored values of the team. Each operation is done at most once for a step, or has the same result when it is repeated. */
export const makeStoreCall = Effect.map(Effect.context<Database>(), (stored): Carry<StoreCall> => {
  const carry: Carry<StoreCall> = ({ operation }, { key: stepKey, run: { team_id } }) => {
    const { key } = operation
    const done = Effect.gen(function* () {
      if (operation.name === "get") {
        const found = yield* readValue(team_id, key)
        return { found: found !== null, value: found?.value ?? null }
      }
      if (operation.name === "set") {
        const set = yield* setValue(team_id, key, operation.value)
        return set === "set" ? { key, value: operation.value } : yield* Effect.fail(refused[set])
      }
      if (operation.name === "increment") {
        const sum = yield* increment(team_id, key, operation.by, stepKey)
        return typeof sum === "string" ? yield* Effect.fail(refused[sum]) : { key, value: sum as Json }
      }
      return { deleted: yield* deleteValue(team_id, key) }
    })
    return done.pipe(
      Effect.catchTag("SqlError", () => Effect.fail(unreached)),
      Effect.provideContext(stored)
    )
  }
  return carry
})
