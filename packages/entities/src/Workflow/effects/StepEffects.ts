import { Effect, Layer } from "effect"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import type { KindOutside } from "@tidegate/workflows/StepKinds"
import { Workshops } from "../../Formatting/Workshop.ts"
import { Effects, inTime, unavailable } from "../RunWork.ts"
import { makeActionStep } from "./ActionEffect.ts"
import { makeDestinationStep } from "./DestinationEffect.ts"
import { makeTransformationStep } from "./TransformationEffect.ts"

/** `key`: the same for every attempt of the step, also after a crash. */
type CarryOut = (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>

/** How steps are carried out that leave the process: of each such kind, so that none is forgotten. */
export type Executors = { readonly [kind in KindOutside]: CarryOut }

/** What leaves the process for a step. */
export const layer = Layer.effect(
  Effects,
  Effect.gen(function* () {
    const workshop = yield* Workshops
    const transform = yield* makeTransformationStep
    const executors: Executors = {
      action: yield* makeActionStep,
      // Its time begins when it has its turn there.
      destination: yield* makeDestinationStep,
      transformation: (effect, run) => inTime(effect, transform(effect, run))
    }
    const executorOf: ReadonlyMap<string, CarryOut> = new Map(Object.entries(executors))
    return {
      carryOut: (effect, run, key) => {
        const { apart, step } = effect
        // What waits for its turn there does not use up the step's time: the operation's own limits end it.
        if (apart !== undefined) return Effect.map(workshop.step(run.team_id, apart.task), apart.outcome)
        return executorOf.get(step.step.kind)?.(effect, run, key) ?? Effect.succeed(unavailable(effect))
      }
    }
  })
)
