import { Clock, Effect } from "effect"
import * as Redis from "effect/persistence/Redis"
import { verdictOf } from "./Allowances.ts"
import { allowancesByName, type RateLimiter } from "./RateLimiter.ts"
import type { Limit, Verdict } from "./Limit.ts"

/**
 * `Allowances.take` in Redis, shared by all processes. It uses the clock of Redis, so the clocks of the processes need not agree. Returns how long
 * (ms) after the call the allowance would have been full, before this call; the verdict follows from it. A key expires after that time.
 */
const take = Redis.script((key: string, windowMs: number, shareMs: number) => [key, windowMs, shareMs], {
  numberOfKeys: 1,
  lua: `
    local time = redis.call('TIME')
    local now = time[1] * 1000 + time[2] / 1000
    local window, share = tonumber(ARGV[1]), tonumber(ARGV[2])
    local wholeAt = tonumber(redis.call('GET', KEYS[1]) or '0')
    local ahead = math.min(math.max(wholeAt - now, 0), window)
    local used = ahead + share
    if used <= window + 0.0005 then
      redis.call('SET', KEYS[1], string.format('%.17g', now + used), 'PX', math.ceil(used))
    end
    return string.format('%.17g', ahead)`
}).withReturnType<string>()

/**
 * Counts shared by all processes. A process's own count of a key is never higher than the shared one. So a local refusal is also one of
 * the shared count, and a caller above its limit causes no call to Redis.
 *
 * Fails open to the process's own count, which continues from the last known state, because operators must be able to reach the API. A
 * stranger gains at most the limit once more per process.
 */
export const redisRateLimiter = (
  redis: Redis.Redis["Service"],
  nameOf: (kind: string, text: string) => string
): RateLimiter["Service"] => {
  const allowancesOf = allowancesByName()
  const ask = redis.eval(take)
  return {
    take: (limit: Limit, key: string): Effect.Effect<Verdict> =>
      Effect.gen(function* () {
        const own = allowancesOf(limit)
        const now = yield* Clock.currentTimeMillis
        const known = own.refusal(key, now, limit)
        if (known !== null) return known
        const { calls, name, windowMs } = limit
        return yield* ask(nameOf(`limit:${name}`, key), windowMs, windowMs / calls).pipe(
          Effect.map((ahead) => {
            const verdict = verdictOf(limit, Number(ahead))
            own.learn(key, now, verdict, limit)
            return verdict
          }),
          Effect.catch(() => Effect.map(Clock.currentTimeMillis, (later) => own.take(key, later, limit)))
        )
      })
  }
}
