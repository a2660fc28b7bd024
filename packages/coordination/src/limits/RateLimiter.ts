import { Clock, Context, Effect, Layer } from "effect"
import { Allowances } from "./Allowances.ts"

/** What may be done so often in a window: all of it at once, then one more as each share of the window has passed. */
export interface Limit {
  /** Of what, as a word: limits of one name are counted together, whoever asks, and are of one window. */
  readonly name: string
  readonly calls: number
  readonly windowMs: number
  /** How many keys a process counts by themselves; the others share one allowance. */
  readonly maxKeys: number
}

/** What became of one call, and what is left. */
export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Milliseconds until nothing is used of the allowance any more. */
  readonly resetMs: number
  /** Milliseconds until the next call is allowed; 0 when one is. */
  readonly retryMs: number
}

/**
 * Counts what callers, clients and keys do, exactly: of all processes together where there is a Redis, else of each process for itself.
 * It never fails, and never takes long: a process that cannot ask Redis goes on by its own count, so at worst each
 * process allows the limit once.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Takes one call of the key's allowance, if there is one left: what is refused uses nothing. */
    readonly take: (limit: Limit, key: string) => Effect.Effect<Verdict>
  }
>()("@tidegate/coordination/limits/RateLimiter") {
  /** Of this process alone. */
  static readonly layerMemory: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
    const allowancesOf = allowancesByName()
    return RateLimiter.of({
      take: (limit, key) => Effect.map(Clock.currentTimeMillis, (now) => allowancesOf(limit).take(key, now, limit))
    })
  })
}

/** The counts of a process, by the names of the limits: these are few, and written in the code. */
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
