import { Effect } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Concerned } from "@tidegate/storage/control/Store"
import { Cancellations } from "./Cancellations.ts"
import { reloadDestinations } from "./dispatch/WakeUps.ts"

/** What has to follow a committed change: returns when everyone whom it concerns uses it. */
export const settling: Effect.Effect<
  (concerned: Concerned) => Effect.Effect<void, GatewayError>,
  never,
  Cancellations | Sharding
> = Effect.gen(function* () {
  const cancellations = yield* Cancellations
  const sharding = yield* Effect.context<Sharding>()
  return ({ cancelled, destinations }) =>
    Effect.provideContext(
      Effect.andThen(
        Effect.forEach(cancelled, cancellations.request, { discard: true }),
        reloadDestinations(destinations)
      ),
      sharding
    )
})
