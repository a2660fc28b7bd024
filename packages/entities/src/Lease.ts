import { Context, Effect, Layer } from "effect"
import { RunnerStorage, type ShardId } from "effect/cluster"
import { metrics } from "@tidegate/telemetry/Metrics"

/** Subtracted from the lease, so that a delivery that was just allowed to start is sent before the lease ends (ms). */
const marginMs = 250

/**
 * Whether this process may still act for a shard. The cluster's locks expire on the server after `expirationMs` without a
 * refresh. The lease measures the same time on the monotonic clock, from before the request whose answer last named the shard as
 * held. It is kept per shard, because a process that was frozen soon gets an answer again, and that answer names no shard: its
 * timers may fire before its actors learn of it.
 */
export class Lease extends Context.Service<
  Lease,
  {
    readonly isHeld: (shard: number) => boolean
    /** How long the shard has been held without interruption (ms); 0 when it is not held. */
    readonly heldMs: (shard: number) => number
  }
>()("@tidegate/entities/Lease") {
  /** For processes without shards, and for tests of one runner. */
  static readonly layerAlways: Layer.Layer<Lease> = Layer.succeed(Lease, {
    isHeld: () => true,
    heldMs: () => Number.POSITIVE_INFINITY
  })

  /** Watches the lock operations of the runner storage that it wraps, and provides both. */
  static readonly layerWatching = (options: {
    readonly expirationMs: number
  }): Layer.Layer<Lease | RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const storage = yield* RunnerStorage.RunnerStorage
        /** Since when and until when each shard is held, by shard number. */
        const terms = new Map<number, { readonly since: number; readonly until: number }>()
        const termOf = (shard: number) => {
          const term = terms.get(shard)
          return term !== undefined && performance.now() < term.until ? term : null
        }

        const renews = <E>(
          asked: Iterable<ShardId.ShardId>,
          answer: (asked: ReadonlyArray<ShardId.ShardId>) => Effect.Effect<Array<ShardId.ShardId>, E>
        ): Effect.Effect<Array<ShardId.ShardId>, E> =>
          Effect.suspend(() => {
            const shards = [...asked]
            const askedAt = performance.now()
            return Effect.tap(answer(shards), (held) =>
              Effect.sync(() => {
                const kept = new Set(held.map(({ id }) => id))
                for (const { id } of shards) if (!kept.has(id) && terms.delete(id)) metrics.leasesLost.add()
                const until = askedAt + options.expirationMs - marginMs
                for (const { id } of held) terms.set(id, { since: termOf(id)?.since ?? performance.now(), until })
              })
            )
          })

        return Context.make(Lease, {
          isHeld: (shard) => termOf(shard) !== null,
          heldMs: (shard) => performance.now() - (termOf(shard)?.since ?? performance.now())
        }).pipe(
          Context.add(RunnerStorage.RunnerStorage, {
            ...storage,
            acquire: (address, shards) => renews(shards, (shards) => storage.acquire(address, shards)),
            refresh: (address, shards) => renews(shards, (shards) => storage.refresh(address, shards)),
            release: (address, shard) =>
              Effect.suspend(() => {
                terms.delete(shard.id)
                return storage.release(address, shard)
              }),
            releaseAll: (address) =>
              Effect.suspend(() => {
                terms.clear()
                return storage.releaseAll(address)
              })
          })
        )
      })
    )
}
