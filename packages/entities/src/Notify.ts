import { Effect } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { DestinationEntity } from "./Destination/DestinationProtocol.ts"

/** How long a change may wait for the owners of the destinations it concerns: longer than a take-over lasts. */
const reloadDeadline = "12 seconds"

/**
 * Tells the destinations that something they deliver by has changed, and waits until each has taken it over. What is
 * stored stays stored when one does not answer: the caller is told 503 and may repeat the same request.
 */
export const reloadDestinations = Effect.fnUntraced(function* (
  destinationIds: Iterable<string>
): Effect.fn.Return<void, GatewayError, Sharding> {
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
