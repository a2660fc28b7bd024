import { Effect } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Concerned } from "@tidegate/storage/control/Store"
import { Cancellations } from "./Cancellations.ts"
import { reloadDestinations, wakeUps } from "./dispatch/WakeUps.ts"

/** What has to follow a committed change: returns when everyone whom it concerns uses it. */
export const settling: Effect.Effect<
  (concerned: Concerned) => Effect.Effect<void, GatewayError>,
  never,
  Cancellations | Sharding
> = Effect.gen(function* () {
  const cancellations = yield* Cancellations
  const sharding = yield* Effect.context<Sharding>()
  const { wakeChannel, wakeSubscription } = yield* wakeUps
  return ({ cancelled, channel, destinations, subscription }) =>
    Effect.forEach(cancelled, cancellations.request, { discard: true }).pipe(
      Effect.andThen(channel === undefined ? Effect.void : wakeChannel(channel)),
      Effect.andThen(subscription === undefined ? Effect.void : wakeSubscription(subscription)),
      Effect.andThen(reloadDestinations(destinations)),
      Effect.provideContext(sharding)
    )
})
