import { Context, Effect, type Scope } from "effect"
import type { Batch } from "./DeliveryBatch.ts"

/**
 * Takes a batch at once, or answers that it has to be sent as a message. `carried`: it came by a message itself, and so may have come
 * before, to an earlier owner.
 */
type Take = (batch: Batch, carried: boolean) => boolean

/**
 * The destinations' actors that are at work in this process. What is for them is put into their queues; a message, which starts an actor
 * or wakes it, costs as much as the rest of handing an event over.
 */
export interface Residents {
  /** Whether the destination's actor has taken the batch. */
  readonly give: (destinationId: string, batch: Batch, carried: boolean) => boolean
  /** Has an actor given what is for it for as long as it lives. */
  readonly add: (destinationId: string, take: Take) => Effect.Effect<void, never, Scope.Scope>
}

const make = (): Residents => {
  const taking = new Map<string, Take>()
  return {
    give: (id, batch, carried) => taking.get(id)?.(batch, carried) ?? false,
    add: (id, take) =>
      Effect.acquireRelease(
        Effect.sync(() => void taking.set(id, take)),
        () => Effect.sync(() => void (taking.get(id) === take && taking.delete(id)))
      )
  }
}

/** One for the process. */
export const Residents = Context.Reference<Residents>("@tidegate/entities/Destination/Residents", {
  defaultValue: make
})
