import { Context, Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { ConnectionEntity } from "@tidegate/entities/Connection/ConnectionProtocol"
import { Batch } from "@tidegate/entities/Destination/DeliveryBatch"
import type { DeliveryItem } from "@tidegate/entities/Destination/DeliveryItem"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"

/** Messages on their way to actors that have not taken them yet. What comes on top is dropped: the sweep finds it. */
const mostOutstanding = 512
/** Without a runner a message waits for ever; a hint is worth waiting for no longer than a sweep takes. */
const patience = "1 second"

/**
 * Tells actors of work that has just been committed. What is told in one turn of the event loop goes out as one message
 * per actor. All of it may be lost: the rows are there, and the sweep finds them.
 */
export class Hints extends Context.Service<
  Hints,
  {
    readonly deliver: (destinationId: string, item: DeliveryItem) => void
    readonly route: (connectionId: string) => void
  }
>()("@tidegate/doors/Hints") {
  static readonly layer: Layer.Layer<Hints, never, Sharding.Sharding> = Layer.effect(
    Hints,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const connection = yield* ConnectionEntity.client
  const run = Effect.runForkWith(yield* Effect.context())

  let items = new Map<string, Array<DeliveryItem>>()
  let connections = new Set<string>()
  const waking = new Set<string>()
  let outstanding = 0
  let scheduled = false

  const send = (message: Effect.Effect<void, unknown>, after?: () => void): void => {
    if (outstanding >= mostOutstanding) return after?.()
    outstanding++
    run(
      message.pipe(
        Effect.timeout(patience),
        Effect.ignore,
        Effect.ensuring(
          Effect.sync(() => {
            outstanding--
            after?.()
          })
        )
      )
    )
  }

  const flush = (): void => {
    scheduled = false
    const batches = items
    const routed = connections
    items = new Map()
    connections = new Set()
    for (const [id, batch] of batches) send(destination(id).Deliver({ batch: new Batch(batch) }, { discard: true }))
    for (const id of routed) {
      if (waking.has(id)) continue
      waking.add(id)
      send(connection(id).Wake(undefined, { discard: true }), () => waking.delete(id))
    }
  }

  const schedule = (): void => {
    if (scheduled) return
    scheduled = true
    queueMicrotask(flush)
  }

  return Hints.of({
    deliver: (destinationId, item) => {
      const batch = items.get(destinationId)
      if (batch === undefined) items.set(destinationId, [item])
      else batch.push(item)
      schedule()
    },
    route: (connectionId) => {
      connections.add(connectionId)
      schedule()
    }
  })
})
