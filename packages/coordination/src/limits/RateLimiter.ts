import { Clock, Context, Effect, Layer } from "effect"
import { Allowances } from "./Allowances.ts"

/** A number of calls per window: all of them at once, then one per share of the window. */
export interface Limit {
  /** A word that identifies the limit: all callers with the same name share its counts, and its window is fixed. */
  readonly name: string
  readonly calls: number
  readonly windowMs: number
  /** Number of keys that a process counts separately; the others share one allowance. */
  readonly maxKeys: number
}

/** The result of one call, and what is left. */
export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Milliseconds until the allowance is full again. */
  readonly resetMs: number
  /** Milliseconds until the next call is allowed; 0 if one is allowed now. */
  readonly retryMs: number
}

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
