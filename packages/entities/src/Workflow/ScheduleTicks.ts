import { Clock, Effect } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { beginScheduled, nextScheduled } from "@tidegate/storage/workflows/Schedules"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { looking, lookEveryMs } from "../Looking.ts"
import { shardOf } from "../Shards.ts"

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
  return more ? now : Math.min((yield* nextScheduled) ?? Infinity, now + lookEveryMs)
})

export const layer = looking("ScheduleTicks", tick, "schedules could not be looked after; the next look goes on")
