import { Clock, Context, Effect, Layer } from "effect"
import { Allowances } from "./Allowances.ts"
import type { Limit, Verdict } from "./Limit.ts"

/**
 * Counts the calls of callers, clients and keys exactly: of all processes together if there is a Redis, else of each process separately.
 * It never fails and is never slow: a process that cannot reach Redis uses its own count. So at worst each process allows the limit once.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Takes one call from the key's allowance, if one is left. A refused call uses nothing. */
    readonly take: (limit: Limit, key: string) => Effect.Effect<Verdict>
  }
>()("@tidegate/coordination/limits/RateLimiter") {
  /** For this process alone. */
  static readonly layerMemory: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
    const allowancesOf = allowancesByName()
    return RateLimiter.of({
      take: (limit, key) => Effect.map(Clock.currentTimeMillis, (now) => allowancesOf(limit).take(key, now, limit))
    })
  })
}

/** The counts of a process, by limit name. There are few names, and all are in the code. */
export const allowancesByName = (): ((limit: Limit) => Allowances) => {
  const byName = new Map<string, Allowances>()
  return (limit) => {
    const known = byName.get(limit.name)
    if (known !== undefined) return known
    const made = new Allowances(limit)
    byName.set(limit.name, made)
    return made
  }
}
