import { Effect } from "effect"
import type { Sharding } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { BulkOperationEntity } from "../BulkOperation/BulkOperationProtocol.ts"
import { ChannelEntity } from "../Channel/ChannelProtocol.ts"
import { ConnectionEntity } from "../Connection/ConnectionProtocol.ts"
import type { PendingRequest } from "../Connection/PendingRequest.ts"
import { DestinationEntity } from "../Destination/DestinationProtocol.ts"
import { SubscriptionEntity } from "../Subscription/SubscriptionProtocol.ts"
import { WorkflowEntity } from "../Workflow/WorkflowProtocol.ts"
import type { Batch } from "./Batch.ts"

/**
 * A message to a shard without a runner waits for ever. A wake-up notification gives up after a second: by then the poller has
 * found the rows.
 */
const patience = "1 second"
/** How long a configuration change waits for the owners of the destinations it concerns. It is longer than a fail-over takes. */
const reloadDeadline = "12 seconds"
/** Sends a wake-up notification. It ends when the actor's runner has taken it. */
export const notify = (message: Effect.Effect<void, unknown>): Effect.Effect<void> =>
  Effect.ignore(Effect.timeout(message, patience))

/** The wake-up notifications to actors. They may be lost: the rows are in SQL, and the poller finds them. */
export const wakeUps = Effect.gen(function* () {
  const destination = yield* DestinationEntity.client
  const connection = yield* ConnectionEntity.client
  const operation = yield* BulkOperationEntity.client
  const workflow = yield* WorkflowEntity.client
  const channel = yield* ChannelEntity.client
  const subscription = yield* SubscriptionEntity.client
  return {
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
    wakeWorkflow: (id: string) => notify(workflow(id).Wake(undefined, { discard: true })),
    /** Something has arrived for which steps of the workflow may wait. */
    arrive: (id: string) => notify(workflow(id).Arrive(undefined, { discard: true })),
    /** The channel of the source has something due, or its rows have changed. */
    wakeChannel: (sourceId: string) => notify(channel(sourceId).Wake(undefined, { discard: true })),
    /** The subscription of the source is due, or has changed. */
    wakeSubscription: (sourceId: string) => notify(subscription(sourceId).Wake(undefined, { discard: true }))
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
