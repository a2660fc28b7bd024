import { Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { action } from "@tidegate/resources/Action"
import { Actions } from "@tidegate/storage/workflows/Actions"
import { actorOf } from "../Actor.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { makeActionPermits } from "./ActionPermits.ts"
import { ActionEntity } from "./ActionProtocol.ts"

/**
 * The saved action's actor: it runs its commands, and gives rate permits for its calls. A run uses the settings that the action
 * had when the run began, and the credentials that it has at the time of the call.
 */
export const layer = ActionEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const shard = shardOf(sharding, id)
    const permits = yield* makeActionPermits(id, () => lease.isHeld(shard))
    const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
    return ActionEntity.of({
      ...(yield* actorOf<typeof action, never>(action, yield* Actions, {
        around: (command) => Effect.ensuring(oneAtATime(command), Effect.sync(permits.changed))
      })),
      // Fails closed: while the rate limit cannot be read, no permit is given.
      Turn: ({ payload }) => Effect.catch(permits.take(payload), () => Effect.succeed(false))
    })
  }),
  // Waiting for a permit must not block commands.
  { concurrency: "unbounded" }
)
