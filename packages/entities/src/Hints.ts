import { Context, Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { ConnectionEntity } from "./Connection/ConnectionProtocol.ts"
import type { PendingRequest } from "./Connection/PendingRequest.ts"
import { Batch as RouteBatch } from "./Connection/RouteBatch.ts"
import { Batch } from "./Destination/DeliveryBatch.ts"
import type { DeliveryItem } from "./Destination/DeliveryItem.ts"
import { DestinationEntity } from "./Destination/DestinationProtocol.ts"

/** Without a runner a message waits for ever; a hint is worth waiting for no longer than a sweep takes. */
const patience = "1 second"
/** How long a change may wait for the owners of the destinations it concerns: longer than a take-over lasts. */
const reloadDeadline = "12 seconds"
/** Messages on their way to actors that have not taken them yet. What comes on top is dropped: the sweep finds it. */
const mostOutstanding = 512

/**
 * What is told to the actors of the event path. Hints may be lost: the rows are there, and the sweep finds them. They end when
 * the actor's runner has taken them.
 */
export const actors = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const connection = yield* ConnectionEntity.client
  const hint = (message: Effect.Effect<void, unknown>): Effect.Effect<void> =>
    Effect.ignore(Effect.timeout(message, patience))
  return {
    /** Events that have just been committed. */
    deliver: (destinationId: string, items: ReadonlyArray<DeliveryItem>) =>
      hint(destination(destinationId).Deliver({ batch: new Batch(items) }, { discard: true })),
    /** Something of the destination's is due. */
    wakeDestination: (id: string) => hint(destination(id).Wake(undefined, { discard: true })),
    /** Requests that have just been committed, and wait for the connection's slow rules. */
    route: (connectionId: string, requests: ReadonlyArray<PendingRequest>) =>
      hint(connection(connectionId).Route({ batch: new RouteBatch(requests) }, { discard: true })),
    /** The connection has pending routes. */
    wakeConnection: (id: string) => hint(connection(id).Wake(undefined, { discard: true }))
  }
})

/**
 * Tells the destinations that something they deliver by has changed, and waits until each has taken it over. No hint: what is
 * stored stays stored when one does not answer, but the caller is told 503 and may repeat the same request.
 */
export const reloadDestinations = Effect.fnUntraced(function* (
  destinationIds: Iterable<string>
): Effect.fn.Return<void, GatewayError, Sharding.Sharding> {
  const destination = yield* DestinationEntity.client
  yield* Effect.forEach(new Set(destinationIds), (id) => destination(id).Reload(), {
    concurrency: 32,
    discard: true
  }).pipe(
    Effect.timeout(reloadDeadline),
    Effect.mapError(() =>
      fail(
        "QUEUE_UNAVAILABLE",
        "the change is stored, but not every destination has confirmed it yet; repeat the request"
      )
    )
  )
})

/** The hints of a process: what is told in one turn of the event loop goes out as one message per actor. */
export class Hints extends Context.Service<
  Hints,
  {
    readonly deliver: (destinationId: string, item: DeliveryItem) => void
    readonly route: (connectionId: string, request: PendingRequest) => void
    /** The connection is to read its pending routes. */
    readonly wake: (connectionId: string) => void
  }
>()("@tidegate/entities/Hints") {
  static readonly layer: Layer.Layer<Hints, never, Sharding.Sharding> = Layer.effect(
    Hints,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const { deliver, route, wakeConnection } = yield* actors
  const run = Effect.runForkWith(yield* Effect.context())

  let items = new Map<string, Array<DeliveryItem>>()
  let requests = new Map<string, Array<PendingRequest>>()
  let connections = new Set<string>()
  let outstanding = 0
  let scheduled = false

  const send = (hint: Effect.Effect<void>): void => {
    if (outstanding >= mostOutstanding) return
    outstanding++
    run(
      Effect.ensuring(
        hint,
        Effect.sync(() => {
          outstanding--
        })
      )
    )
  }

  const flush = (): void => {
    scheduled = false
    const batches = items
    const routed = requests
    const woken = connections
    items = new Map()
    requests = new Map()
    connections = new Set()
    for (const [id, batch] of batches) send(deliver(id, batch))
    for (const [id, batch] of routed) send(route(id, batch))
    for (const id of woken) send(wakeConnection(id))
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
    route: (connectionId, request) => {
      const batch = requests.get(connectionId)
      if (batch === undefined) requests.set(connectionId, [request])
      else batch.push(request)
      schedule()
    },
    wake: (connectionId) => {
      connections.add(connectionId)
      schedule()
    }
  })
})
