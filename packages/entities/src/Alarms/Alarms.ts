import { Clock, Effect } from "effect"
import { Sharding, Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { raiseAlarms } from "@tidegate/storage/alarms/Alarms"
import { noteExpiringKeys } from "@tidegate/storage/alarms/ExpiringKeys"
import { noteGrowingQueues } from "@tidegate/storage/alarms/GrowingQueues"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { Loops } from "../Loops.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf, shardsPerGroup } from "../Shards.ts"

/** The time between two looks (ms), and between two looks at what has no occurrence: queues and keys. */
const everyMs = 5_000
const rarelyEveryMs = 60_000

/** Makes issues and system events of what has gone wrong, and wakes whom the events concern. Returns whether there may be more. */
export const lookForAlarms: Effect.Effect<boolean, SqlError.SqlError, Database | Secrets | Sharding.Sharding> =
  Effect.gen(function* () {
    const loops = yield* Loops
    const now = yield* Clock.currentTimeMillis
    const { more, replayed } = yield* raiseAlarms(yield* replayRouting, loops.beginSystem, now)
    const { wakeConnection, wakeWorkflow } = yield* wakeUps
    const connections = new Set(replayed.flatMap(({ connections }) => connections))
    const workflows = new Set(replayed.flatMap(({ workflows }) => workflows))
    // Wake-up notifications: the poller finds what they miss.
    yield* Effect.forEach(connections, wakeConnection, { concurrency: 16, discard: true })
    yield* Effect.forEach(workflows, wakeWorkflow, { concurrency: 16, discard: true })
    return more
  })

const shards = Array.from({ length: shardsPerGroup }, (_, index) => index + 1)

const lookRarely = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const now = yield* Clock.currentTimeMillis
  yield* noteExpiringKeys(now)
  yield* noteGrowingQueues(shards, (id) => shardOf(sharding, id), now)
})

/** Looks on one runner of the cluster. Its work is in SQL, so another runner goes on when it is lost. */
export const layer = Singleton.make(
  "Alarms",
  Effect.gen(function* () {
    let rarelyAt = (yield* Clock.currentTimeMillis) + rarelyEveryMs
    const look = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (now >= rarelyAt) {
        rarelyAt = now + rarelyEveryMs
        yield* lookRarely
      }
      return yield* lookForAlarms
    })
    return yield* Effect.forever(
      Effect.gen(function* () {
        const more = yield* Effect.catchCause(look, (cause) =>
          Effect.as(Effect.logWarning("alarms could not be raised; the next look goes on", cause), false)
        )
        if (!more) yield* Effect.sleep(everyMs)
      })
    )
  })
)
