import { Effect } from "effect"
import { Sharding } from "effect/cluster"
import { Batch } from "./Batch.ts"
import { actors } from "./Dispatcher.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { HandoverEntity } from "./HandoverProtocol.ts"

/**
 * A message that a shard's last owner took, but did not confirm before it gave the shard up, is sent again to the next owner, who cannot
 * know what has been delivered of it. For so long (ms) after a shard was taken over, longer than any message is under way, what is
 * handed over for it only says that there is something to be read.
 */
const strayMs = 5_000

/** Gives each destination its batch. One that has gone to another runner meanwhile is told there that there is something to be read. */
export const layer = HandoverEntity.toLayer(
  Effect.gen(function* () {
    const { take } = yield* actors
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
