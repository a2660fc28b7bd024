import { Context, Effect, type Scope } from "effect"
import type { Batch } from "./Batch.ts"
import type { PendingRequest } from "./Connection/PendingRequest.ts"
import type { DeliveryItem } from "./Destination/DeliveryItem.ts"

/** Takes a batch at once, or answers that it has to be sent as a message. */
type Take<Item> = (batch: Batch<Item>) => boolean

/**
 * The actors of a kind that are at work in this process. What is for them is put into their queues; a message, which starts an actor
 * or wakes it, costs as much as the rest of handing an event over.
 */
export interface Residents<Item> {
  /** Whether the actor has taken the batch. */
  readonly give: (id: string, batch: Batch<Item>) => boolean
  /** Has an actor given what is for it for as long as it lives. */
  readonly add: (id: string, take: Take<Item>) => Effect.Effect<void, never, Scope.Scope>
}

const make = <Item>(): Residents<Item> => {
  const taking = new Map<string, Take<Item>>()
  return {
    give: (id, batch) => taking.get(id)?.(batch) ?? false,
    add: (id, take) =>
      Effect.acquireRelease(
        Effect.sync(() => void taking.set(id, take)),
        () => Effect.sync(() => void (taking.get(id) === take && taking.delete(id)))
      )
  }
}

/** Destinations; one for the process. */
export const Destinations = Context.Reference<Residents<DeliveryItem>>("@tidegate/entities/Residents/Destinations", {
  defaultValue: make
})

/** Connections; one for the process. */
export const Connections = Context.Reference<Residents<PendingRequest>>("@tidegate/entities/Residents/Connections", {
  defaultValue: make
})
