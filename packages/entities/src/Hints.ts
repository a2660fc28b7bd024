import { Context, Effect, Layer } from "effect"
import { type RunnerAddress, ShardId, Sharding } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { ConnectionEntity } from "./Connection/ConnectionProtocol.ts"
import type { PendingRequest } from "./Connection/PendingRequest.ts"
import { Batch as RouteBatch } from "./Connection/RouteBatch.ts"
import { Batch } from "./Destination/DeliveryBatch.ts"
import type { DeliveryItem } from "./Destination/DeliveryItem.ts"
import { DestinationEntity } from "./Destination/DestinationProtocol.ts"
import { Handover } from "./Handover/Handover.ts"
import { HandoverEntity } from "./Handover/HandoverProtocol.ts"
import { Owners } from "./Handover/Owners.ts"
import * as Residents from "./Residents.ts"
import { idOn, shardOf } from "./Shards.ts"

/** Without a runner a message waits for ever; a hint is worth waiting for no longer than a sweep takes. */
const patience = "1 second"
/** How long a change may wait for the owners of the destinations it concerns: longer than a take-over lasts. */
const reloadDeadline = "12 seconds"
/** Messages on their way to actors that have not taken them yet. What comes on top is dropped: the sweep finds it. */
const mostOutstanding = 512

/** Events for destinations, by their ids. */
type Batches = ReadonlyMap<string, Batch>

/** What goes to one runner, and a shard of it. */
interface Away {
  readonly shard: number
  readonly batches: Map<string, Batch>
}

/**
 * What is told to the actors of the event path. Hints may be lost: the rows are there, and the sweep finds them. They end when
 * the actor's runner has taken them.
 */
export const actors = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const connection = yield* ConnectionEntity.client
  const handover = yield* HandoverEntity.client
  const sharding = yield* Sharding.Sharding
  const owners = yield* Owners
  const residents = yield* Residents.Destinations
  const routing = yield* Residents.Connections
  const hint = (message: Effect.Effect<void, unknown>): Effect.Effect<void> =>
    Effect.ignore(Effect.timeout(message, patience))

  /** Gives the actors of this process their batches; answers what remains to be sent, to those that are asleep. */
  const take = (batches: Batches): Effect.Effect<void> => {
    const asleep = Array.from(batches).filter(([id, batch]) => !residents.give(id, batch))
    if (asleep.length === 0) return Effect.void
    return hint(
      Effect.forEach(asleep, ([id, batch]) => Effect.ignore(destination(id).Deliver({ batch }, { discard: true })), {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** Events that have just been committed, on their way: one message for each runner that has one of their destinations. */
  const handOver = (batches: Batches): ReadonlyArray<Effect.Effect<void>> => {
    const here = new Map<string, Batch>()
    const away = new Map<RunnerAddress.RunnerAddress | undefined, Away>()
    for (const [id, batch] of batches) {
      if (residents.give(id, batch)) continue
      const shard = shardOf(sharding, id)
      if (sharding.hasShardId(ShardId.make("default", shard))) {
        here.set(id, batch)
        continue
      }
      const owner = owners.of(shard)
      const known = away.get(owner)
      if (known === undefined) away.set(owner, { shard, batches: new Map([[id, batch]]) })
      else known.batches.set(id, batch)
    }
    const messages = Array.from(away.values(), ({ batches, shard }) =>
      hint(handover(idOn(sharding, shard)).Take({ handover: new Handover(batches) }, { discard: true }))
    )
    return here.size === 0 ? messages : [take(here), ...messages]
  }

  return {
    take,
    handOver,
    /** Events of one destination. */
    deliver: (destinationId: string, items: ReadonlyArray<DeliveryItem>) =>
      Effect.all(handOver(new Map([[destinationId, new Batch(items)]])), { discard: true }),
    /** Something of the destination's is due. */
    wakeDestination: (id: string) => hint(destination(id).Wake(undefined, { discard: true })),
    /** Requests that have just been committed, and wait for the connection's slow rules. */
    route: (connectionId: string, requests: ReadonlyArray<PendingRequest>): ReadonlyArray<Effect.Effect<void>> => {
      const batch = new RouteBatch(requests)
      return routing.give(connectionId, batch)
        ? []
        : [hint(connection(connectionId).Route({ batch }, { discard: true }))]
    },
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

/** The hints of a process: what is told in one turn of the event loop goes out as one message per runner, and one per connection. */
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
  const { handOver, route, wakeConnection } = yield* actors
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
    const batches = new Map(Array.from(items, ([id, events]) => [id, new Batch(events)]))
    const routed = requests
    const woken = connections
    items = new Map()
    requests = new Map()
    connections = new Set()
    for (const hint of handOver(batches)) send(hint)
    for (const [id, batch] of routed) for (const hint of route(id, batch)) send(hint)
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
