import { Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { action } from "@tidegate/resources/Action"
import { Actions } from "@tidegate/storage/workflows/Actions"
import { actorOf } from "../Actor.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { makeActionTurns } from "./ActionTurns.ts"
import { ActionEntity } from "./ActionProtocol.ts"

/** The saved action's actor: its commands, and whose turn it is to call it. Runs read what they go by when they begin, and credentials when they call. */
export const layer = ActionEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const shard = shardOf(sharding, id)
    const turns = yield* makeActionTurns(id, () => lease.isHeld(shard))
    const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
    return ActionEntity.of({
      ...(yield* actorOf<typeof action, never>(action, yield* Actions, {
        around: (command) => Effect.ensuring(oneAtATime(command), Effect.sync(turns.changed))
      })),
      // Fails closed: while it cannot be read how fast it may be called, who asks has no turn.
      Turn: ({ payload }) => Effect.catch(turns.turn(payload), () => Effect.succeed(false))
    })
  }),
  // Those that wait keep no command waiting.
  { concurrency: "unbounded" }
)
