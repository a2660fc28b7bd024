import { Clock, Context, Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { Allowances } from "@tidegate/coordination/limits/Allowances"
import { RedisStatus } from "@tidegate/coordination/Coordination"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import type { Verdict } from "@tidegate/coordination/limits/Limit"
import { KeyLimitEntity } from "@tidegate/entities/KeyLimit/KeyLimitProtocol"
import { perMinute } from "./RateLimit.ts"

/** Keys that a process counts separately. */
const maxKeys = 100_000
/** An actor answers within a millisecond or two. When its shard has no owner, the wait is hardly longer than this. */
const patience = "2 seconds"

/**
 * The rate limits of keys that have one of their own, exact over all processes: in Redis if it answers, else in the key's actor,
 * which in a gateway of one process is memory. A refusal that follows from local knowledge asks nobody, so callers over their
 * limit cost the others nothing.
 *
 * Fails open to this process's own count when neither answers: an operator must be able to reach the API.
 */
export class KeyLimits extends Context.Service<
  KeyLimits,
  {
    readonly take: (key: string, callsPerMinute: number) => Effect.Effect<Verdict>
  }
>()("@tidegate/api/KeyLimits") {
  static readonly layer: Layer.Layer<KeyLimits, never, RateLimiter | RedisStatus | Sharding.Sharding> = Layer.effect(
    KeyLimits,
    Effect.gen(function* () {
      const limiter = yield* RateLimiter
      const redis = yield* RedisStatus
      const actor = yield* KeyLimitEntity.client
      const limitOf = (calls: number) => perMinute("project_keys", calls, maxKeys)
      const known = new Allowances(limitOf(1))

      return KeyLimits.of({
        take: Effect.fnUntraced(function* (key, calls) {
          const limit = limitOf(calls)
          if (redis.answers() === true) return yield* limiter.take(limit, key)
          const now = yield* Clock.currentTimeMillis
          const refusal = known.refusal(key, now, limit)
          if (refusal !== null) return refusal
          return yield* actor(key)
            .Take({ calls, window_ms: limit.windowMs })
            .pipe(
              Effect.timeout(patience),
              Effect.map((verdict) => {
                known.learn(key, now, verdict, limit)
                return verdict
              }),
              // Also when the actor loses its shard meanwhile and is interrupted.
              Effect.catchCause(() => limiter.take(limit, key))
            )
        })
      })
    })
  )
}
