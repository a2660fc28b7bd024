import { Context, Effect, Layer } from "effect"
import { ShardId, Sharding } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { BulkOperationEntity } from "../BulkOperation/BulkOperationProtocol.ts"
import { ConnectionEntity } from "../Connection/ConnectionProtocol.ts"
import type { PendingRequest } from "../Connection/PendingRequest.ts"
import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Batch } from "./Batch.ts"
import type { DeliveryItem } from "../Destination/queue/DeliveryItem.ts"
import { DestinationEntity } from "../Destination/DestinationProtocol.ts"
import { Handover } from "./Handover.ts"
import { HandoverEntity } from "./HandoverProtocol.ts"
import { type Batches, Outgoing, type Place } from "./Outgoing.ts"
import { Owners } from "./Owners.ts"
import * as Residents from "./LocalEntities.ts"
import { idOn, shardOf } from "../Shards.ts"
import { WorkflowEntity } from "../Workflow/WorkflowProtocol.ts"

/**
 * A message to a shard without a runner waits for ever. A wake-up notification gives up after a second: by then the poller has
 * found the rows.
 */
const patience = "1 second"
/** How long a configuration change waits for the owners of the destinations it concerns. It is longer than a fail-over takes. */
const reloadDeadline = "12 seconds"
/** Messages that no actor has taken yet. Further ones are dropped: the poller finds the rows. */
const maxOutstanding = 512
/** Messages sent in one iteration of the event loop. */
const messagesAtOnce = 8

/**
 * The messages to the actors of the event path. They are wake-up notifications and may be lost: the rows are in SQL, and the
 * poller finds them. A notification ends when the actor's runner has taken it.
 */
export const actors = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const connection = yield* ConnectionEntity.client
  const operation = yield* BulkOperationEntity.client
  const workflow = yield* WorkflowEntity.client
  const handover = yield* HandoverEntity.client
  const sharding = yield* Sharding.Sharding
  const owners = yield* Owners
  const residents = yield* Residents.Destinations
  const notify = (message: Effect.Effect<void, unknown>): Effect.Effect<void> =>
    Effect.ignore(Effect.timeout(message, patience))

  const placeOf = (destinationId: string): Place => {
    const shard = shardOf(sharding, destinationId)
    return sharding.hasShardId(ShardId.make("default", shard)) ? "here" : owners.of(shard)
  }

  /** Gives the actors of this process their batches. An actor that is not in memory gets its batch by message. */
  const take = (batches: Batches): Effect.Effect<void> => {
    const asleep = Array.from(batches).filter(([id, batch]) => residents.give(id, batch) === undefined)
    if (asleep.length === 0) return Effect.void
    return notify(
      Effect.forEach(asleep, ([id, batch]) => Effect.ignore(destination(id).Deliver({ batch }, { discard: true })), {
        concurrency: "unbounded",
        discard: true
      })
    )
  }

  /** Sends the events of destinations that live on the same runner in one message. */
  const handOver = (place: Place, batches: Batches): Effect.Effect<void> => {
    if (place === "here") return take(batches)
    const [any] = batches.keys()
    const to = idOn(sharding, shardOf(sharding, any!))
    return notify(handover(to).Take({ handover: new Handover(batches) }, { discard: true }))
  }

  return {
    placeOf,
    take,
    handOver,
    /** Something of the destination's is due. */
    wakeDestination: (id: string) => notify(destination(id).Wake(undefined, { discard: true })),
    /** Events of the destination that waited are not to be delivered any more: it reads again what is. */
    rereadDestination: (id: string) => notify(destination(id).Reread()),
    /** Requests that have just been committed, and wait for the connection's slow rules. */
    route: (connectionId: string, batch: Batch<PendingRequest>) =>
      notify(connection(connectionId).Route({ batch }, { discard: true })),
    /** The connection has pending routes. */
    wakeConnection: (id: string) => notify(connection(id).Wake(undefined, { discard: true })),
    /** The bulk operation is not at its end. */
    wakeOperation: (id: string) => notify(operation(id).Wake(undefined, { discard: true })),
    /** The workflow has runs that are due. */
    wakeWorkflow: (id: string) => notify(workflow(id).Wake(undefined, { discard: true }))
  }
})

/**
 * Notifies the destinations that their settings have changed, and waits until each has loaded the new ones. This is not a wake-up
 * notification: when a destination does not answer, the stored change stays, and the caller gets a 503 and may repeat the same
 * request.
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

/**
 * Sends the wake-up notifications of a process. Events of one iteration of the event loop go out in one message per runner (or
 * join the next message to it), and routing jobs in one per connection.
 */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    readonly deliver: (destinationId: string, item: DeliveryItem) => void
    readonly route: (connectionId: string, request: PendingRequest) => void
    /** The connection shall read its routing jobs. */
    readonly wake: (connectionId: string) => void
    /** The workflow has a run to begin. */
    readonly run: (workflowId: string) => void
  }
>()("@tidegate/entities/Dispatcher") {
  static readonly layer: Layer.Layer<Dispatcher, never, Sharding.Sharding> = Layer.effect(
    Dispatcher,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const { handOver, placeOf, route, wakeConnection, wakeWorkflow } = yield* actors
  const residents = yield* Residents.Destinations
  const routing = yield* Residents.Connections
  const running = yield* Residents.Workflows
  const run = Effect.runForkWith(yield* Effect.context())

  let requests = new Map<string, Array<PendingRequest>>()
  let connections = new Set<string>()
  let workflows = new Set<string>()
  let outstanding = 0
  let scheduled = false

  const send = (message: Effect.Effect<void>, after?: () => void): void => {
    if (outstanding >= maxOutstanding) return after?.()
    outstanding++
    run(
      Effect.ensuring(
        message,
        Effect.sync(() => {
          outstanding--
          after?.()
        })
      )
    )
  }

  const outgoing = new Outgoing({
    give: (id, batch) => residents.give(id, batch) === true,
    placeOf,
    send: (place, batches, after) => send(handOver(place, batches), after)
  })

  const flush = (): void => {
    scheduled = false
    outgoing.flush()
    const routed = requests
    const woken = connections
    requests = new Map()
    connections = new Set()
    for (const [id, requests] of routed) {
      const batch = new Batch(requests)
      if (routing.give(id, batch) === undefined) tell(route(id, batch))
    }
    for (const id of woken) tell(wakeConnection(id))
    const begun = workflows
    workflows = new Set()
    for (const id of begun) if (running.give(id) === undefined) tell(wakeWorkflow(id))
    if (!isSending) sendSome()
  }

  /** Messages to send in the next iteration of the event loop: at most as many as may be under way. */
  const unsent: Array<Effect.Effect<void>> = []
  let isSending = false

  const tell = (message: Effect.Effect<void>): void => {
    if (outstanding + unsent.length < maxOutstanding) unsent.push(message)
  }

  /**
   * A message may start an actor, which takes its time in the same iteration of the event loop. A thousand messages, for the
   * connections of one source, are therefore spread over many iterations.
   */
  const sendSome = (): void => {
    for (const message of unsent.splice(0, messagesAtOnce)) send(message)
    isSending = unsent.length > 0
    if (isSending) inLaterTurn(sendSome)
  }

  const schedule = (): void => {
    if (scheduled) return
    scheduled = true
    queueMicrotask(flush)
  }

  return Dispatcher.of({
    deliver: (destinationId, item) => {
      outgoing.add(destinationId, item)
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
    },
    run: (workflowId) => {
      workflows.add(workflowId)
      schedule()
    }
  })
})
