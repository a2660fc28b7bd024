import { Context, Effect, Layer, Queue } from "effect"
import { cancelPending, type PendingOf } from "@tidegate/storage/delivery/CancelPending"
import type { Database } from "@tidegate/storage/Database"

/** How many may wait. More are dropped: what they would write down is read off all the same. */
const waiting = 1_000

/**
 * Writes down, behind the caller's back, the cancellations that a disable or delete has caused: one connection or
 * destination at a time, whatever their backlog. A process that ends in the middle leaves the rest to the destinations,
 * which cancel what they meet in their queues.
 */
export class Cancellations extends Context.Service<
  Cancellations,
  { readonly request: (of: PendingOf) => Effect.Effect<void> }
>()("@tidegate/entities/Cancellations") {
  static readonly layer: Layer.Layer<Cancellations, never, Database> = Layer.effect(
    Cancellations,
    Effect.gen(function* () {
      const requests = yield* Queue.dropping<PendingOf>(waiting)
      yield* Queue.take(requests).pipe(
        Effect.flatMap((of) =>
          cancelPending(of).pipe(
            Effect.catch((error) => Effect.logWarning("pending events could not be cancelled yet", { ...of, error }))
          )
        ),
        Effect.forever,
        Effect.forkScoped
      )
      return { request: (of) => Effect.asVoid(Queue.offer(requests, of)) }
    })
  )
}
