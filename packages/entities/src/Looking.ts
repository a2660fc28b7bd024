import { Clock, Effect } from "effect"
import { Singleton } from "effect/cluster"

/** The longest time between two looks (ms): what has been added since the last one is found by the next. */
export const lookEveryMs = 5_000

/**
 * Looks after something on one runner of the cluster. Its work is in SQL, so another runner goes on when it is lost. `look` returns when to
 * look again (Unix ms); `failed` says in the log that one has failed.
 */
export const looking = <E, R>(name: string, look: Effect.Effect<number, E, R>, failed: string) =>
  Singleton.make(
    name,
    Effect.forever(
      Effect.gen(function* () {
        const next = yield* Effect.catchCause(look, (cause) => Effect.as(Effect.logWarning(failed, cause), null))
        const now = yield* Clock.currentTimeMillis
        yield* Effect.sleep(next === null ? lookEveryMs : Math.max(0, next - now))
      })
    )
  )
