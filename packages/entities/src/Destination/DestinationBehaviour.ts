import { Effect, Fiber } from "effect"
import { Sharding } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import { destination } from "@tidegate/resources/Destination"
import type { Database } from "@tidegate/storage/Database"
import { Destinations } from "@tidegate/storage/control/Destinations"
import { retryEvent } from "@tidegate/storage/bulk/EventRetry"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { actorOf } from "../Actor.ts"
import { Cancellations } from "../Cancellations.ts"
import { shardOf } from "../Shards.ts"
import { endConsent, startConsent } from "../tokens/Consent.ts"
import { makeDeliveryLoop } from "./sending/DeliveryLoop.ts"
import { DestinationEntity } from "./DestinationProtocol.ts"
import { consents } from "./DestinationTokens.ts"
import { makeTestDelivery } from "./testing/TestDelivery.ts"

/** How long an actor without work stays in memory. To start again it needs three queries. */
const maxIdleTime = "2 minutes"

/** The destination's actor: its commands, and its delivery queue. */
export const layer = DestinationEntity.toLayer(
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const scope = yield* Effect.scope
    const deliveries = yield* makeDeliveryLoop
    const ingress = yield* Ingress
    const tested = yield* makeTestDelivery

    /** A command has changed the row: deliveries use the new settings from here on, even when the caller has gone. */
    const thenReload = Effect.fnUntraced(function* <A>(command: Effect.Effect<A, GatewayError, Database | Secrets>) {
      const [answer, reloading] = yield* Effect.uninterruptible(
        Effect.flatMap(command, (answer) =>
          Effect.map(Effect.forkIn(deliveries.reloadIfBegun, scope), (fiber) => [answer, fiber] as const)
        )
      )
      yield* Fiber.join(reloading)
      return answer
    })

    const cancellations = yield* Cancellations
    const commands = yield* actorOf<typeof destination, Database | Secrets>(destination, yield* Destinations, {
      around: thenReload,
      settle: ({ cancelled }) => Effect.forEach(cancelled, cancellations.request, { discard: true })
    })
    /**
     * Delivering waits until the settings are loaded. Commands do not wait: most destinations deliver nothing while they are
     * being set up.
     */
    const begun = <A, E, R>(delivering: Effect.Effect<A, E, R>) => Effect.andThen(deliveries.begin, delivering)

    return DestinationEntity.of({
      ...commands,
      RetryEvent: ({ payload }) =>
        Effect.map(retryEvent({ ...payload, shardOf: (id) => shardOf(sharding, id) }), (retried) => {
          deliveries.wake()
          return {
            event_id: retried.parent_event_id,
            replay_event_id: retried.id,
            retried_at: retried.created_at.toISOString()
          }
        }).pipe(begun),
      StartConsent: ({ payload }) =>
        begun(Effect.suspend(() => startConsent(consents, deliveries.credential(), payload.team_id, ingress))),
      EndConsent: ({ payload }) =>
        begun(Effect.suspend(() => endConsent(consents, deliveries.credential(), deliveries.tokens, payload))),
      Deliver: ({ payload }) =>
        begun(
          Effect.andThen(
            Effect.sync(() => deliveries.offer(payload.batch)),
            deliveries.work
          )
        ),
      Wake: () =>
        begun(
          Effect.andThen(
            Effect.sync(() => deliveries.wake()),
            deliveries.work
          )
        ),
      Reload: () => deliveries.reload,
      Reread: () => Effect.sync(() => deliveries.reread()),
      Send: ({ payload }) => begun(deliveries.send(payload)),
      Attach: ({ payload }) => begun(Effect.sync(() => deliveries.tunnel.attach(payload.local_url))),
      Listen: ({ payload }) => begun(deliveries.tunnel.listen(payload)),
      Answer: ({ payload }) => begun(Effect.sync(() => deliveries.tunnel.answered(payload.cli_id, payload.results))),
      Pull: ({ payload }) => begun(deliveries.polls.pull(payload)),
      Settle: ({ payload }) => begun(deliveries.polls.settle(payload)),
      Test: ({ payload }) => tested(payload),
      Leave: ({ payload }) => begun(Effect.sync(() => deliveries.tunnel.leave(payload.cli_id)))
    })
  }),
  { concurrency: "unbounded", maxIdleTime }
)
