import { Clock, Effect } from "effect"
import * as Redis from "effect/persistence/Redis"
import { verdictOf } from "./Allowances.ts"
import { allowancesByName, type Limit, type RateLimiter, type Verdict } from "./RateLimiter.ts"

/**
 * `Allowances.take` where all processes see it, by the clock of Redis: none of theirs has to be right. Gives for how long (ms) the
 * allowance was not whole before the call, from which the verdict follows. A key is there for as long as that.
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
 * Counts of all processes. What this process knows of a key is never more than what is counted there, so a refusal by it is one
 * there too, and a caller over its limit costs Redis nothing.
 *
 * Fails open to this process's own count, which goes on from what was known last: an operator must reach the API, and a stranger
 * gains the limit once more per process at most.
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
