import { Context, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"

/** Kept back from the lease, so that a delivery that just may start is on the wire before the lease is over (ms). */
const marginMs = 250

/**
 * Whether this process may still act for the shards it holds. The cluster's locks end at the server after
 * `expirationMs` without a word from here; this counts the same time from the last refresh that was answered, on the
 * monotonic clock, from before it was sent. A process that was frozen finds its lease over before it learns what it lost.
 */
export class Lease extends Context.Service<Lease, { readonly isHeld: () => boolean }>()("@tidegate/entities/Lease") {
  /** For processes without shards, and tests of one runner. */
  static readonly layerAlways: Layer.Layer<Lease> = Layer.succeed(Lease, { isHeld: () => true })

  /** Watches the refreshes of the runner storage that it wraps, and provides both. */
  static readonly layerWatching = (options: {
    readonly expirationMs: number
  }): Layer.Layer<Lease | RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const storage = yield* RunnerStorage.RunnerStorage
        let until = 0
        const renews = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
          Effect.suspend(() => {
            const sentAt = performance.now()
            return Effect.tap(effect, () =>
              Effect.sync(() => {
                until = Math.max(until, sentAt + options.expirationMs - marginMs)
              })
            )
          })
        return Context.make(Lease, { isHeld: () => performance.now() < until }).pipe(
          Context.add(RunnerStorage.RunnerStorage, {
            ...storage,
            acquire: (address, shards) => renews(storage.acquire(address, shards)),
            refresh: (address, shards) => renews(storage.refresh(address, shards))
          })
        )
      })
    )
}
