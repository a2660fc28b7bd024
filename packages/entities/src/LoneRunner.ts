import { Clock, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"

/** How long a runner that was alone goes by that (ns): another one that comes waits so much longer for its shards. */
const aloneFor = 2_000_000_000n

type Runners = Effect.Success<RunnerStorage.RunnerStorage["Service"]["getRunners"]>

/**
 * A runner asks twice a second who else is there, because one that is gone is noticed by it. While nobody else is, there is nobody to
 * be noticed, and it asks less. It may see itself alone when it is no longer: what it holds others cannot take, and they wait.
 */
export const layerAskingLess: Layer.Layer<RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> =
  Layer.effect(
    RunnerStorage.RunnerStorage,
    Effect.map(RunnerStorage.RunnerStorage, (storage) => {
      let alone: { readonly runners: Runners; readonly until: bigint } | null = null
      const forgetting = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.ensuring(
          effect,
          Effect.sync(() => (alone = null))
        )
      return RunnerStorage.RunnerStorage.of({
        ...storage,
        getRunners: Effect.gen(function* () {
          const at = yield* Clock.currentTimeNanos
          if (alone !== null && at < alone.until) return alone.runners
          const runners = yield* storage.getRunners
          alone = runners.length === 1 ? { runners, until: at + aloneFor } : null
          return runners
        }),
        register: (runner, healthy) => forgetting(storage.register(runner, healthy)),
        unregister: (address) => forgetting(storage.unregister(address)),
        setRunnerHealth: (address, healthy) => forgetting(storage.setRunnerHealth(address, healthy))
      })
    })
  )
