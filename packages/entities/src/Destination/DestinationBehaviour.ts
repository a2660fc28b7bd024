import { Effect, Fiber } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { retryEvent } from "@tidegate/storage/EventRetry"
import { shardOf } from "../Shards.ts"
import { makeDeliveryLoop } from "./DeliveryLoop.ts"
import * as commands from "./DestinationCommands.ts"
import { DestinationEntity } from "./DestinationProtocol.ts"

/** How long an actor without work stays in memory. Coming back costs it three queries. */
const maxIdleTime = "2 minutes"

/** The destination's actor: its commands, and its delivery queue. */
export const layer = DestinationEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const scope = yield* Effect.scope
    const deliveries = yield* makeDeliveryLoop

    /** A command has changed the row: from here on deliveries go by it, also when the caller has gone away. */
    const thenReload = Effect.fnUntraced(function* <A, E, R>(command: Effect.Effect<A, E, R>) {
      const [answer, reloading] = yield* Effect.uninterruptible(
        Effect.flatMap(command, (answer) =>
          Effect.map(Effect.forkIn(deliveries.reload, scope), (fiber) => [answer, fiber] as const)
        )
      )
      yield* Fiber.join(reloading)
      return answer
    })

    return DestinationEntity.of({
      Create: ({ payload }) => thenReload(commands.create(payload.team_id, id, payload.input)),
      Update: ({ payload }) => thenReload(commands.update(payload.team_id, id, payload.input)),
      Replace: ({ payload }) => thenReload(commands.replace(payload.team_id, id, payload.input)),
      Upsert: ({ payload }) => thenReload(commands.upsert(payload.team_id, id, payload.input)),
      Disable: ({ payload }) => thenReload(commands.disable(payload.team_id, id)),
      Enable: ({ payload }) => thenReload(commands.enable(payload.team_id, id)),
      Delete: ({ payload }) => thenReload(commands.remove(payload.team_id, id)),
      RetryEvent: ({ payload }) =>
        Effect.map(retryEvent({ ...payload, shardOf: (id) => shardOf(sharding, id) }), (retried) => {
          deliveries.wake()
          return {
            event_id: retried.parent_event_id,
            replay_event_id: retried.id,
            retried_at: retried.created_at.toISOString()
          }
        }),
      Deliver: ({ payload }) =>
        Effect.andThen(
          Effect.sync(() => deliveries.offer(payload.batch.items, payload.batch.more)),
          deliveries.work
        ),
      Wake: () =>
        Effect.andThen(
          Effect.sync(() => deliveries.wake()),
          deliveries.work
        ),
      Reload: () => deliveries.reload
    })
  }),
  { concurrency: "unbounded", maxIdleTime }
)
