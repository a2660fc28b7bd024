import { Clock, Effect, Layer } from "effect"
import { RunnerStorage } from "effect/cluster"

/** How long (ns) a runner that was alone relies on that: a new runner waits that much longer for its shards. */
const aloneFor = 2_000_000_000n

type Runners = Effect.Success<RunnerStorage.RunnerStorage["Service"]["getRunners"]>

/**
 * A runner reads the list of runners twice a second, to notice one that has died. A runner that is alone has no other to notice,
 * and reads less often. It may think itself alone when it no longer is. That is safe: others cannot take the shards that it
 * holds, and they wait.
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
