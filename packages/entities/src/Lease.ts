import { Context, Effect, Layer } from "effect"
import { RunnerStorage, type ShardId } from "effect/cluster"
import { metrics } from "@tidegate/telemetry/Metrics"

/** Kept back from the lease, so that a delivery that just may start is on the wire before the lease is over (ms). */
const marginMs = 250

/**
 * Whether this process may still act for a shard that it was given. The cluster's locks end at the server after
 * `expirationMs` without a word from here; this counts the same time from the last answer that named the shard as held, on
 * the monotonic clock, from before it was asked for. Shard by shard, because a process that was frozen is soon answered
 * again, and the answer is that it holds nothing: its actors learn that later than their timers fire.
 */
export class Lease extends Context.Service<
  Lease,
  {
    readonly isHeld: (shard: number) => boolean
    /** For how long it has been held without a break (ms); 0 when it is not. */
    readonly heldMs: (shard: number) => number
  }
>()("@tidegate/entities/Lease") {
  /** For processes without shards, and tests of one runner. */
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
        /** Since when and until when each shard is held, by its number. */
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
