import { Clock, Context, Effect, Layer, Metric, Semaphore } from "effect"
import { ClusterMetrics, Sharding, ShardId } from "effect/cluster"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import { backlogs } from "@tidegate/storage/delivery/Backlog"
import { type Database, tryPools } from "@tidegate/storage/Database"
import { runBacklog } from "@tidegate/storage/workflows/RunBacklog"
import { metrics, worstDestinations } from "@tidegate/telemetry/Metrics"

/** Minimum interval between two reads (ms), however many callers ask. */
const freshMs = 5_000
const patience = "3 seconds"

/** Metrics that are not counted as things happen, but read on demand. */
export class Samples extends Context.Service<Samples, { readonly refresh: Effect.Effect<void> }>()(
  "@tidegate/gateway/Samples"
) {
  static readonly layer: Layer.Layer<Samples, never, Sharding.Sharding | Database> = Layer.effect(
    Samples,
    Effect.suspend(() => make)
  )

  /** Reads at intervals, for an exporter that does not call `refresh`. */
  static readonly layerRefreshing: Layer.Layer<never, never, Samples> = Layer.effectDiscard(
    Effect.flatMap(Samples, ({ refresh }) =>
      Effect.forkScoped(Effect.forever(Effect.andThen(refresh, Effect.sleep(everyMs))))
    )
  )
}

const everyMs = 10_000

const make = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const database = yield* Effect.context<Database>()
  const shards = Array.from({ length: shardsPerGroup }, (_, index) => index + 1)
  const mine = (): ReadonlyArray<number> => shards.filter((id) => sharding.hasShardId(ShardId.make("default", id)))
  metrics.shardsHeld.readBy(() => mine().length)

  const readBacklogs = Effect.gen(function* () {
    const held = mine()
    const now = yield* Clock.currentTimeMillis
    const found = held.length === 0 ? [] : yield* Effect.provideContext(backlogs(held), database)
    const worst = found.toSorted((a, b) => b.waiting - a.waiting)
    const shown = worst.slice(0, worstDestinations)
    const others = worst.slice(worstDestinations)
    const age = (oldestDue: number | null): number => (oldestDue === null ? 0 : Math.max(0, now - oldestDue) / 1_000)
    metrics.backlog.replace([
      ...shown.map(({ destinationId, waiting }) => [[destinationId], waiting] as const),
      [["other"], others.reduce((sum, { waiting }) => sum + waiting, 0)]
    ])
    metrics.oldestDue.replace([
      ...shown.map(({ destinationId, oldestDue }) => [[destinationId], age(oldestDue)] as const),
      [["other"], others.reduce((most, { oldestDue }) => Math.max(most, age(oldestDue)), 0)]
    ])
  })

  const readRuns = Effect.gen(function* () {
    const held = mine()
    const now = yield* Clock.currentTimeMillis
    const { oldestDue, waiting } =
      held.length === 0 ? { waiting: 0, oldestDue: null } : yield* Effect.provideContext(runBacklog(held), database)
    metrics.workflowRunsWaiting.set(waiting)
    metrics.workflowOldestDue.set(oldestDue === null ? 0 : Math.max(0, now - oldestDue) / 1_000)
  })

  const readRunners = Effect.map(Metric.value(ClusterMetrics.runners), ({ value }) =>
    metrics.runners.set(Number(value))
  )

  let readAt = Number.NEGATIVE_INFINITY
  const refresh = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (now - readAt < freshMs) return
    readAt = now
    // A value that cannot be read stays unchanged: callers still get the other metrics.
    yield* Effect.all(
      [readBacklogs, readRuns, Effect.provideContext(tryPools, database), readRunners].map((read) =>
        Effect.ignoreCause(Effect.timeout(read, patience), {
          log: "Warn",
          message: "a sample for the metrics could not be taken"
        })
      ),
      {
        concurrency: "unbounded",
        discard: true
      }
    )
  })
  return Samples.of({ refresh: Semaphore.makeUnsafe(1).withPermits(1)(refresh) })
})
