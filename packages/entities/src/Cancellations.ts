import { Context, Effect, Layer, Queue } from "effect"
import { cancelPending, type PendingOf } from "@tidegate/storage/delivery/CancelPending"
import type { Database } from "@tidegate/storage/Database"

/**
 * How many connections and destinations may wait. Further ones are dropped: the destinations record their cancellations instead.
 */
const waiting = 1_000

/**
 * Records in the background the cancellations that a disable or delete has caused: one connection or destination at a time,
 * however large its backlog. When the process ends in the middle, the destinations do the rest: they cancel such events when they
 * meet them in their queues.
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
