import { Context, Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import type { PendingRequest } from "../Connection/PendingRequest.ts"
import { inLaterTurn } from "@tidegate/runtime/EventLoopBudget"
import { Batch } from "./Batch.ts"
import type { DeliveryItem } from "../Destination/queue/DeliveryItem.ts"
import { eventMessages } from "./EventMessages.ts"
import * as LocalEntities from "./LocalEntities.ts"
import { Outgoing } from "./Outgoing.ts"
import { wakeUps } from "./WakeUps.ts"

/** Messages that no actor has taken yet. Further ones are dropped: the poller finds the rows. */
const maxOutstanding = 512
/** Messages sent in one iteration of the event loop. */
const messagesAtOnce = 8

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
    /** Something has arrived for which steps of the workflow may wait. */
    readonly arrive: (workflowId: string) => void
    /** The channel of this source has something to do. */
    readonly channel: (sourceId: string) => void
  }
>()("@tidegate/entities/Dispatcher") {
  static readonly layer: Layer.Layer<Dispatcher, never, Sharding.Sharding> = Layer.effect(
    Dispatcher,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const { handOver, locationOf } = yield* eventMessages
  const { arrive, route, wakeChannel, wakeConnection, wakeWorkflow } = yield* wakeUps
  const destinations = yield* LocalEntities.Destinations
  const routing = yield* LocalEntities.Connections
  const running = yield* LocalEntities.Workflows
  const run = Effect.runForkWith(yield* Effect.context())

  let requests = new Map<string, Array<PendingRequest>>()
  let connections = new Set<string>()
  let workflows = new Set<string>()
  let arrivals = new Set<string>()
  let channels = new Set<string>()
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
    give: (id, batch) => destinations.give(id, batch) === true,
    locationOf,
    send: (location, batches, after) => send(handOver(location, batches), after)
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
      if (routing.give(id, batch) === undefined) later(route(id, batch))
    }
    for (const id of woken) later(wakeConnection(id))
    const begun = workflows
    workflows = new Set()
    for (const id of begun) if (running.give(id) === undefined) later(wakeWorkflow(id))
    const arrived = arrivals
    arrivals = new Set()
    for (const id of arrived) later(arrive(id))
    const notified = channels
    channels = new Set()
    for (const id of notified) later(wakeChannel(id))
    if (!isSending) sendSome()
  }

  /** Messages to send in the next iteration of the event loop: at most as many as may be under way. */
  const unsent: Array<Effect.Effect<void>> = []
  let isSending = false

  const later = (message: Effect.Effect<void>): void => {
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
    },
    arrive: (workflowId) => {
      arrivals.add(workflowId)
      schedule()
    },
    channel: (sourceId) => {
      channels.add(sourceId)
      schedule()
    }
  })
})
