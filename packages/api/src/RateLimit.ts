import { Context } from "effect"

/** Calls a minute: of each API key (0: as many as it likes), and failed authentications of each client address. */
export const RateLimits = Context.Reference<{ readonly perKey: number; readonly failedPerAddress: number }>(
  "@tidegate/api/RateLimits",
  { defaultValue: () => ({ perKey: 6_000, failedPerAddress: 60 }) }
)

export const windowMs = 60_000

/** What became of one call, and what is left. */
export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Milliseconds until nothing is used of the allowance any more. */
  readonly resetMs: number
  /** Milliseconds until the next call is allowed; 0 when one is. */
  readonly retryMs: number
}

/** Half a microsecond: sums of fractions of a window do not add up exactly. */
const rounding = 0.000_5

/** How often a full table is searched for keys that need no place any more. */
const sweepEveryMs = 1_000

/**
 * A number of calls a minute for each of many keys, by GCRA: all of them at once, then one as each share of the minute has
 * passed. What is known of a key is one time, when its allowance is whole again; from then on it needs no place.
 *
 * At most `mostKeys` have a place. No key loses one before its time, else whoever sends under many keys would set back
 * its own count: when all are taken, the keys without one share a single allowance.
 */
export class Allowances {
  private readonly wholeAt = new Map<string, number>()
  private sharedWholeAt = 0
  private sweptAt = Number.NEGATIVE_INFINITY
  private readonly limit: number
  private readonly mostKeys: number

  constructor(options: { readonly perMinute: number; readonly mostKeys: number }) {
    this.limit = options.perMinute
    this.mostKeys = options.mostKeys
  }

  /** How many keys have a place. */
  get size(): number {
    return this.wholeAt.size
  }

  /** Takes one call of the key's allowance, if there is one left: what is refused uses nothing. */
  take(key: string, nowMs: number): Verdict {
    const known = this.wholeAt.get(key)
    const placed = known !== undefined || this.makeRoom(nowMs)
    const share = windowMs / this.limit
    const wholeAt = placed ? (known ?? 0) : this.sharedWholeAt
    // A clock that was set back must not make anybody wait for more than a window from then on.
    const from = Math.min(Math.max(wholeAt, nowMs), nowMs + windowMs)
    const used = from + share - nowMs
    const allowed = used <= windowMs + rounding
    const next = allowed ? from + share : from
    if (placed) this.wholeAt.set(key, next)
    else this.sharedWholeAt = next
    if (!allowed) return { allowed, limit: this.limit, remaining: 0, resetMs: from - nowMs, retryMs: used - windowMs }
    const remaining = Math.floor((windowMs - used + rounding) / share)
    return { allowed, limit: this.limit, remaining, resetMs: used, retryMs: 0 }
  }

  private makeRoom(nowMs: number): boolean {
    if (this.wholeAt.size < this.mostKeys) return true
    if (Math.abs(nowMs - this.sweptAt) < sweepEveryMs) return false
    this.sweptAt = nowMs
    for (const [key, wholeAt] of this.wholeAt) if (wholeAt <= nowMs) this.wholeAt.delete(key)
    return this.wholeAt.size < this.mostKeys
  }
}
