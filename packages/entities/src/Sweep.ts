import { Clock, Effect, Layer } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { passed } from "@tidegate/model/TestSignal"
import type { SqlError } from "effect/sql"
import { connectionsWithPendingRoutes, dueDestinations } from "@tidegate/storage/DeliveryRows"
import type { Database } from "@tidegate/storage/Database"
import { metrics } from "@tidegate/telemetry/Metrics"
import { actors } from "./Hints.ts"
import { shardsPerGroup } from "./Shards.ts"

/** What has been due for longer than this (ms), nobody is about to deliver: its hint was lost, or its time has come. */
const graceMs = 250
const everyMs = 500
/** A sweep may use this share of the time at the most: the more there is to look through, the rarer it looks. */
const mostOfTheTime = 0.1

const all = Array.from({ length: shardsPerGroup }, (_, index) => index + 1)

/**
 * Finds the due rows of the shards that this runner holds and wakes their actors. It is what makes every other message
 * a hint: retries and delays come due through it, and whatever a crash or a lost message left behind is found by it.
 */
export const sweepOnce: Effect.Effect<void, SqlError.SqlError, Sharding.Sharding | Database> = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const mine = all.filter((id) => sharding.hasShardId(ShardId.make("default", id)))
  if (mine.length === 0) return
  const { wakeConnection, wakeDestination } = yield* actors
  const before = (yield* Clock.currentTimeMillis) - graceMs
  const due = yield* dueDestinations(mine, before)
  metrics.sweepFound.at("destination").add(due.length)
  yield* Effect.forEach(due, wakeDestination, { concurrency: 16, discard: true })
  const routes = yield* connectionsWithPendingRoutes(mine, before)
  metrics.sweepFound.at("connection").add(routes.length)
  yield* Effect.forEach(routes, wakeConnection, { concurrency: 16, discard: true })
  passed("sweep")
})

export const layer: Layer.Layer<never, never, Sharding.Sharding | Database> = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.gen(function* () {
      while (true) {
        const began = yield* Clock.currentTimeMillis
        yield* Effect.catch(sweepOnce, (error) => Effect.logWarning("the sweep could not read what is due", error))
        const took = (yield* Clock.currentTimeMillis) - began
        metrics.sweepSeconds.observe(took / 1_000)
        yield* Effect.sleep(Math.max(everyMs - took, took / mostOfTheTime))
      }
    })
  )
)
