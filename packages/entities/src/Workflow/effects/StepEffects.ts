import { Effect, Layer } from "effect"
import type { DueRun } from "@tidegate/storage/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { Effects, failed, inTime, unavailable } from "../RunWork.ts"
import { makeActionStep } from "./Action.ts"
import { makeDestinationStep } from "./Destination.ts"
import { makeTransformationStep } from "./Transformation.ts"
import { placeOf } from "../PlaceOf.ts"

/** `key`: the same for every attempt of the step, also after a crash. */
type CarryOut = (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>

/** How steps that leave the process are carried out, by their kind. */
export const layer = Layer.effect(
  Effects,
  Effect.gen(function* () {
    const transform = yield* makeTransformationStep
    const kinds: Readonly<Record<string, CarryOut>> = {
      action: yield* makeActionStep,
      // Its time begins when it has its turn there.
      destination: yield* makeDestinationStep,
      transformation: (effect, run) => inTime(effect, transform(effect, run))
    }
    return {
      carryOut: (effect, run, key) => {
        const carryOut = kinds[effect.step.step.kind]
        if (carryOut === undefined) return Effect.succeed(unavailable(effect))
        // A run waits for the end of each of its steps, also of one that breaks down before it has called anybody.
        return Effect.suspend(() => carryOut(effect, run, key)).pipe(
          Effect.catchDefect((defect) =>
            Effect.as(
              Effect.logError("a step broke down", {
                run_id: run.id,
                step_id: effect.step.step.id,
                place: placeOf(defect)
              }),
              failed("ACTION_FAILED", "the gateway could not make this call")
            )
          )
        )
      }
    }
  })
)
