import { Context, Effect, type Scope } from "effect"
import type { Batch } from "./Batch.ts"
import type { PendingRequest } from "../Connection/PendingRequest.ts"
import type { DeliveryItem } from "../Destination/queue/DeliveryItem.ts"
import type { StepSend, StepSent } from "../Destination/steps/StepProtocol.ts"

/** Takes what is for its actor at once, or answers undefined: it has to be sent as a message. */
type Take<Given, Answer> = (given: Given) => Answer | undefined

/**
 * The actors of a kind that are at work in this process. What is for them is handed to them; a message, which starts an actor
 * or wakes it, costs as much as the rest of handing an event over, and more than the rest of a step's call.
 */
export interface Residents<Given, Answer = true> {
  /** What the actor answers that has taken it; undefined: none has. */
  readonly give: (id: string, given: Given) => Answer | undefined
  /** Has an actor given what is for it for as long as it lives. */
  readonly add: (id: string, take: Take<Given, Answer>) => Effect.Effect<void, never, Scope.Scope>
}

const make = <Given, Answer>(): Residents<Given, Answer> => {
  const taking = new Map<string, Take<Given, Answer>>()
  return {
    give: (id, given) => taking.get(id)?.(given),
    add: (id, take) =>
      Effect.acquireRelease(
        Effect.sync(() => void taking.set(id, take)),
        () => Effect.sync(() => void (taking.get(id) === take && taking.delete(id)))
      )
  }
}

/** Destinations; one for the process. */
export const Destinations = Context.Reference<Residents<Batch<DeliveryItem>>>(
  "@tidegate/entities/Residents/Destinations",
  { defaultValue: make }
)

/** Destinations that steps of workflows call; one for the process. */
export const Called = Context.Reference<Residents<StepSend, Effect.Effect<StepSent>>>(
  "@tidegate/entities/Residents/Called",
  { defaultValue: make }
)

/** Workflows, which are told that they have runs to begin; one for the process. */
export const Workflows = Context.Reference<Residents<void>>("@tidegate/entities/Residents/Workflows", {
  defaultValue: make
})

/** Connections; one for the process. */
export const Connections = Context.Reference<Residents<Batch<PendingRequest>>>(
  "@tidegate/entities/Residents/Connections",
  { defaultValue: make }
)
