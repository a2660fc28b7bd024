import { Effect, Layer } from "effect"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import type { Outcome } from "@tidegate/workflows/StepKind"
import type { KindOutside } from "@tidegate/workflows/StepKinds"
import { ProviderCalls } from "../../accounts/ProviderCalls.ts"
import { Workshops } from "../../Formatting/Workshop.ts"
import { Effects, inTime, unavailable } from "../RunWork.ts"
import { makeActionStep } from "./ActionEffect.ts"
import { makeDestinationStep } from "./DestinationEffect.ts"
import { makeStoreStep } from "./StoreEffect.ts"
import { makeWaitStep } from "./WaitEffect.ts"
import { makeWorkflowStep } from "./WorkflowEffect.ts"
import { makeTransformationStep } from "./TransformationEffect.ts"

/** `key`: the same for every attempt of the step, also after a crash. */
type CarryOut = (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>

/** One executor for each kind of step that leaves the process. The type requires all of them. */
export type Executors = { readonly [kind in KindOutside]: CarryOut }

/** Executes the steps that leave the process. */
export const layer = Layer.effect(
  Effects,
  Effect.gen(function* () {
    const workshop = yield* Workshops
    const transform = yield* makeTransformationStep
    const executors: Executors = {
      action: yield* makeActionStep,
      // The destination's actor starts the timeout when the call leaves its queue.
      destination: yield* makeDestinationStep,
      store: yield* makeStoreStep,
      workflow: yield* makeWorkflowStep,
      wait: yield* makeWaitStep,
      transformation: (effect, run) => inTime(effect, transform(effect, run))
    }
    const executorOf: ReadonlyMap<string, CarryOut> = new Map(Object.entries(executors))
    return {
      carryOut: (effect, run, key) => {
        const { apart, step } = effect
        // Waiting for the process does not count against the step's timeout. The operation's own limits end it.
        if (apart !== undefined) return Effect.map(workshop.step(run.team_id, apart.task), apart.outcome)
        return executorOf.get(step.step.kind)?.(effect, run, key) ?? Effect.succeed(unavailable(effect))
      }
    }
  })
).pipe(Layer.provide(ProviderCalls.layer))
