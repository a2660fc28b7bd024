import { Clock, Effect, Layer } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { passed } from "@tidegate/runtime/TestSignal"
import type { SqlError } from "effect/sql"
import { dueWork } from "@tidegate/storage/delivery/DeliveryRows"
import type { Database } from "@tidegate/storage/Database"
import { metrics } from "@tidegate/telemetry/Metrics"
import { actors } from "./Dispatcher.ts"
import { shardsPerGroup } from "../Shards.ts"
import { OwnRuns } from "../Workflow/RunsInHand.ts"

/** Nobody is about to deliver what has been due for longer than this (ms): its notification was lost, or its time has come. */
const graceMs = 250
const everyMs = 500
/** Where nothing was due, it looks again after this time (ms), or when it knows that something comes due. What else it finds then, a notification was lost of. */
const idleMs = 2_000
/** Workflows are woken so long (ms) before a run of theirs comes due: longer than it is until the next look. */
const aheadMs = 3_000
/** The share of the time that looking may take: the more there is to look through, the rarer it looks. */
const maxOfTheTime = 0.1

const all = Array.from({ length: shardsPerGroup }, (_, index) => index + 1)

const held = Effect.map(Sharding.Sharding, (sharding) =>
  all.filter((id) => sharding.hasShardId(ShardId.make("default", id)))
)

/**
 * Finds the due rows of the shards that this runner holds and wakes their actors; answers when there is reason to look again (Unix
 * ms). Because of it every other message may be lost: it finds what a crash or a lost message has left behind, and retries and delayed events when they
 * come due.
 */
export const sweepOnce: Effect.Effect<number, SqlError.SqlError, Sharding.Sharding | Database> = Effect.gen(
  function* () {
    const mine = yield* held
    const now = yield* Clock.currentTimeMillis
    if (mine.length === 0) return now + idleMs
    const { wakeConnection, wakeDestination, wakeOperation, wakeWorkflow } = yield* actors
    const runs = yield* OwnRuns
    runs.seen()
    const due = yield* dueWork(mine, now - graceMs, runs.leftOut, [now, now + aheadMs])
    const { connections, destinations, next, operations, workflows } = due
    metrics.sweepFound.at("destination").add(destinations.length)
    yield* Effect.forEach(destinations, wakeDestination, { concurrency: 16, discard: true })
    metrics.sweepFound.at("connection").add(connections.length)
    yield* Effect.forEach(connections, wakeConnection, { concurrency: 16, discard: true })
    // Those at work are told in vain; they are few.
    yield* Effect.forEach(operations, wakeOperation, { concurrency: 16, discard: true })
    yield* Effect.forEach(workflows, wakeWorkflow, { concurrency: 16, discard: true })
    passed("sweep")
    return destinations.length + connections.length + workflows.length > 0
      ? now
      : Math.min(next + graceMs, now + idleMs)
  }
)

export const layer: Layer.Layer<never, never, Sharding.Sharding | Database> = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.gen(function* () {
      let known: ReadonlySet<number> = new Set()
      let lookAt = 0
      const runs = yield* OwnRuns
      while (true) {
        const began = yield* Clock.currentTimeMillis
        const mine = yield* held
        // Shards that were taken over have been without an owner for seconds.
        if (began >= Math.min(lookAt, runs.soonest + graceMs) || mine.some((shard) => !known.has(shard))) {
          lookAt = yield* Effect.catch(sweepOnce, (error) =>
            Effect.as(Effect.logWarning("the sweep could not read what is due", error), began)
          )
          metrics.sweepSeconds.observe(((yield* Clock.currentTimeMillis) - began) / 1_000)
        }
        known = new Set(mine)
        const took = (yield* Clock.currentTimeMillis) - began
        yield* Effect.sleep(Math.max(everyMs - took, took / maxOfTheTime))
      }
    })
  )
)
