import { Clock, Effect } from "effect"
import { Sharding, Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { beginScheduled, nextScheduled } from "@tidegate/storage/workflows/Schedules"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { shardOf } from "../Shards.ts"

/** The longest time between two looks (ms): a new schedule is found by a look. */
const everyMs = 5_000

/**
 * Begins the runs of schedules that are due, and wakes their workflows. Returns when to look again (Unix ms). It may run in several
 * processes at once, because each schedule is locked while its runs are begun.
 */
export const tick: Effect.Effect<number, SqlError.SqlError, Database | Sharding.Sharding> = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const { wakeWorkflow } = yield* wakeUps
  const now = yield* Clock.currentTimeMillis
  const { more, workflows } = yield* beginScheduled(now, (id) => shardOf(sharding, id))
  // A notification that is lost does no harm: the poller finds the runs.
  yield* Effect.forEach(workflows, wakeWorkflow, { concurrency: 16, discard: true })
  return more ? now : Math.min((yield* nextScheduled) ?? Infinity, now + everyMs)
})

/** Looks after the schedules on one runner of the cluster. Their rows are in SQL, so another runner goes on when it is lost. */
export const layer = Singleton.make(
  "ScheduleTicks",
  Effect.forever(
    Effect.gen(function* () {
      const next = yield* Effect.catchCause(tick, (cause) =>
        Effect.as(Effect.logWarning("schedules could not be looked after; the next look goes on", cause), null)
      )
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(next === null ? everyMs : Math.max(0, next - now))
    })
  )
)
