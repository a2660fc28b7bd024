import { Array as Arr, Clock, Effect, Layer } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { passed } from "@tidegate/runtime/TestSignal"
import type { SqlError } from "effect/sql"
import { dueWork } from "@tidegate/storage/delivery/DeliveryRows"
import type { Database } from "@tidegate/storage/Database"
import { metrics } from "@tidegate/telemetry/Metrics"
import { ChannelsUnderWay } from "../Channel/ChannelsUnderWay.ts"
import { wakeUps } from "./WakeUps.ts"
import { shardsPerGroup } from "../Shards.ts"
import { OwnRuns } from "../Workflow/RunsInHand.ts"

/**
 * A row that has been due for longer than this (ms) is not about to be delivered: its wake-up notification was lost, or its time
 * has just come.
 */
const graceMs = 250
const everyMs = 500
/**
 * After a look that found nothing due, the next one is this much later (ms), or when the next known row comes due. What such a
 * late look finds beside that is the row of a lost notification.
 */
const idleMs = 2_000
/** Workflows are woken this long (ms) before a run comes due: longer than the time until the next look. */
const aheadMs = 3_000
/** The share of time that polling may use. The more rows there are to read, the less often the poller looks. */
const maxOfTheTime = 0.1
/**
 * The longest pause between two looks (ms), whatever the last one took: it may have waited for a database that stood still, and what
 * came meanwhile has lost its wake-up notifications.
 */
const maxPauseMs = 3_000

/** The pause after a look that took so long (ms). */
export const pauseAfter = (took: number): number => Math.min(Math.max(everyMs - took, took / maxOfTheTime), maxPauseMs)

/**
 * Channels that are woken in one iteration of the event loop: most of them start an actor, and events of senders wait meanwhile.
 */
const channelsAtOnce = 8

const all = Array.from({ length: shardsPerGroup }, (_, index) => index + 1)

const held = Effect.map(Sharding.Sharding, (sharding) =>
  all.filter((id) => sharding.hasShardId(ShardId.make("default", id)))
)

/**
 * Finds the due rows of this runner's shards and wakes their actors. Returns when to look again (Unix ms). Retries and delays
 * come due through the poller, and it finds what a crash or a lost message left behind: this is why every other message may be
 * lost.
 */
export const pollOnce: Effect.Effect<number, SqlError.SqlError, Sharding.Sharding | Database> = Effect.gen(
  function* () {
    const mine = yield* held
    const now = yield* Clock.currentTimeMillis
    if (mine.length === 0) return now + idleMs
    const { arrive, wakeChannel, wakeConnection, wakeDestination, wakeOperation, wakeWorkflow } = yield* wakeUps
    const runs = yield* OwnRuns
    runs.seen()
    const underWay = [...(yield* ChannelsUnderWay)]
    const due = yield* dueWork(mine, now - graceMs, runs.leftOut, [now, now + aheadMs], underWay)
    const { arrivals, channels, connections, destinations, next, operations, workflows } = due
    metrics.pollerFound.at("destination").add(destinations.length)
    yield* Effect.forEach(destinations, wakeDestination, { concurrency: 16, discard: true })
    metrics.pollerFound.at("connection").add(connections.length)
    yield* Effect.forEach(connections, wakeConnection, { concurrency: 16, discard: true })
    // Operations that are running already are woken for nothing; they are few.
    yield* Effect.forEach(operations, wakeOperation, { concurrency: 16, discard: true })
    yield* Effect.forEach(workflows, wakeWorkflow, { concurrency: 16, discard: true })
    yield* Effect.forEach(arrivals, arrive, { concurrency: 16, discard: true })
    for (const some of Arr.chunksOf(channels, channelsAtOnce)) {
      yield* Effect.forEach(some, wakeChannel, { concurrency: "unbounded", discard: true })
      yield* laterTurn
    }
    passed("poll")
    return destinations.length + connections.length + workflows.length + arrivals.length + channels.length > 0
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
        const isTime = began >= Math.min(lookAt, runs.soonest + graceMs)
        // No look plans the next one so late: the machine's clock was set back.
        const isSetBack = lookAt > began + idleMs
        // Shards that were just taken over have been without an owner for seconds.
        if (isTime || isSetBack || mine.some((shard) => !known.has(shard))) {
          lookAt = yield* Effect.catch(pollOnce, (error) =>
            Effect.as(Effect.logWarning("the poller could not read what is due", error), began)
          )
          metrics.pollerSeconds.observe(((yield* Clock.currentTimeMillis) - began) / 1_000)
        }
        known = new Set(mine)
        const took = (yield* Clock.currentTimeMillis) - began
        yield* Effect.sleep(pauseAfter(took))
      }
    })
  )
)
