import { Effect } from "effect"
import { Sharding } from "effect/cluster"
import { Batch } from "./Batch.ts"
import { eventMessages } from "./EventMessages.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { HandoverEntity } from "./HandoverProtocol.ts"

/**
 * When a shard's last owner took a message but gave the shard up before it confirmed, the message is sent again to the next
 * owner. That owner cannot know what has been delivered already. For this long (ms) after a shard was taken over, which is longer
 * than any message is under way, a handover for the shard only wakes its destinations, and they read SQL.
 */
const strayMs = 5_000

/**
 * Gives each destination its batch. A destination that has moved to another runner meanwhile gets a wake-up notification there.
 */
export const layer = HandoverEntity.toLayer(
  Effect.gen(function* () {
    const { take } = yield* eventMessages
    const lease = yield* Lease
    const sharding = yield* Sharding.Sharding
    const isStray = (id: string): boolean => lease.heldMs(shardOf(sharding, id)) < strayMs
    return HandoverEntity.of({
      Take: ({ payload }) =>
        Effect.suspend(() =>
          take(
            new Map(
              Array.from(payload.handover.batches, ([id, batch]) => [id, isStray(id) ? new Batch([], true) : batch])
            )
          )
        )
    })
  }),
  { concurrency: "unbounded" }
)
