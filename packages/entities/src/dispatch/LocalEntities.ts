import { Context, Effect, type Scope } from "effect"
import type { Batch } from "./Batch.ts"
import type { PendingRequest } from "../Connection/PendingRequest.ts"
import type { DeliveryItem } from "../Destination/queue/DeliveryItem.ts"
import type { StepSend, StepSent } from "../Destination/steps/StepProtocol.ts"

/** Hands work to an actor at once. Undefined: the actor cannot take it, and it has to be sent as a message. */
type Take<Given, Answer> = (given: Given) => Answer | undefined

/**
 * The actors of one kind that are running in this process. Their work is handed to them by a function call. A message, which
 * starts or wakes an actor, would cost as much as the rest of a handover, and more than the rest of a workflow step's call.
 */
export interface LocalActors<Given, Answer = true> {
  /** What the actor returns that has taken the work; undefined: none has. */
  readonly give: (id: string, given: Given) => Answer | undefined
  /** Registers an actor, for as long as its scope lives, to be given its work directly. */
  readonly add: (id: string, take: Take<Given, Answer>) => Effect.Effect<void, never, Scope.Scope>
}

const make = <Given, Answer>(): LocalActors<Given, Answer> => {
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

/** Destinations; one registry per process. */
export const Destinations = Context.Reference<LocalActors<Batch<DeliveryItem>>>(
  "@tidegate/entities/dispatch/LocalEntities/Destinations",
  { defaultValue: make }
)

/** Destinations that workflow steps call; one registry per process. */
export const Called = Context.Reference<LocalActors<StepSend, Effect.Effect<StepSent>>>(
  "@tidegate/entities/dispatch/LocalEntities/Called",
  { defaultValue: make }
)

/** Workflows, which are notified of runs to begin; one registry per process. */
export const Workflows = Context.Reference<LocalActors<void>>("@tidegate/entities/dispatch/LocalEntities/Workflows", {
  defaultValue: make
})

/** Connections; one registry per process. */
export const Connections = Context.Reference<LocalActors<Batch<PendingRequest>>>(
  "@tidegate/entities/dispatch/LocalEntities/Connections",
  { defaultValue: make }
)
