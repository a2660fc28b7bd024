import { Context, Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { askReceive, type CallbackReceived } from "@tidegate/entities/Workflow/StepCallback"

/** Steps of runs that receive callbacks, wherever the actor of their workflow is. */
export class ReceivingSteps extends Context.Service<
  ReceivingSteps,
  { readonly receive: (workflowId: string, received: CallbackReceived) => Effect.Effect<void, GatewayError> }
>()("@tidegate/ingress/ReceivingSteps") {
  static readonly layer: Layer.Layer<ReceivingSteps, never, Sharding.Sharding> = Layer.effect(
    ReceivingSteps,
    Effect.map(askReceive, (receive) => ReceivingSteps.of({ receive }))
  )
}
