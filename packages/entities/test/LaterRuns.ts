import { Clock, Duration, Effect } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { ensurePartitions } from "@tidegate/storage/retention/Partitions"
import { shardOf } from "../src/Shards.ts"
import { plansOf } from "../src/Workflow/Plans.ts"
import { runPump } from "../src/Workflow/RunPump.ts"

/** Runs of workflows that wait for days. */

/** The time as it will be, so many milliseconds ahead. Whoever sleeps does so as long as ever. */
export const later = (ahead: () => number): Clock.Clock => {
  const now = () => Date.now() + ahead()
  const nanos = () => BigInt(now()) * 1_000_000n
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback<void>((resume) => {
        const timer = setTimeout(() => resume(Effect.void), Duration.toMillis(duration))
        return Effect.sync(() => clearTimeout(timer))
      })
  }
}

/** All that the workflow has to do at that time, by an actor that has just come into being. */
export const work = Effect.fnUntraced(function* (id: string, ms = 0) {
  const sharding = yield* Sharding.Sharding
  yield* ensurePartitions(Date.now() + ms)
  const { work } = yield* runPump(id, shardOf(sharding, id), plansOf(id), () => true)
  yield* Effect.provideService(
    work,
    Clock.Clock,
    later(() => ms)
  )
})

/** What retention does to a run of that age. */
export const forget = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update requests set path = '', query = '', headers = '', presented = null, body = null
    from workflow_runs r where r.id = ${run} and requests.id = r.request_id`
  yield* sql`update workflow_steps set outputs = null, previews = null where run_id = ${run}`
})
