import { Clock, Effect } from "effect"
import type { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { makeScheduled, nextScheduledRequest } from "@tidegate/storage/schedules/ScheduledRequests"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { looking, lookEveryMs } from "../Looking.ts"
import { replayRouting } from "../Replay.ts"

/** The shortest time between two looks (ms): a schedule that another transaction has locked is still due. */
const soonestMs = 100

/**
 * Makes the requests of schedules that are due, and wakes whom they concern. Returns when to look again (Unix ms). It may run in several
 * processes at once, because each schedule is locked while its requests are made.
 */
export const lookAtSources: Effect.Effect<number, SqlError.SqlError, Database | Secrets | Sharding.Sharding> =
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const { made, more } = yield* makeScheduled(now, yield* replayRouting)
    const { wakeConnection, wakeWorkflow } = yield* wakeUps
    const connections = new Set(made.flatMap(({ connections }) => connections))
    const workflows = new Set(made.flatMap(({ workflows }) => workflows))
    // Wake-up notifications: the poller finds what they miss.
    yield* Effect.forEach(connections, wakeConnection, { concurrency: 16, discard: true })
    yield* Effect.forEach(workflows, wakeWorkflow, { concurrency: 16, discard: true })
    if (more) return now
    return Math.min(Math.max((yield* nextScheduledRequest) ?? Infinity, now + soonestMs), now + lookEveryMs)
  })

export const layer = looking(
  "ScheduledSources",
  lookAtSources,
  "schedules of sources could not be looked after; the next look goes on"
)
