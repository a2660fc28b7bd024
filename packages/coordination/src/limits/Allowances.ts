import type { Limit, Verdict } from "./RateLimiter.ts"

/** Half a microsecond: sums of fractions of a window do not add up exactly. */
const rounding = 0.000_5

/** How often a full table is searched for keys that need no place any more. */
const sweepEveryMs = 1_000

/** What a call is answered when the key's allowance is whole again `aheadMs` after it. */
export const verdictOf = ({ calls, windowMs }: Limit, aheadMs: number): Verdict => {
  const share = windowMs / calls
  const used = aheadMs + share
  const told = { limit: calls, windowMs }
  return used <= windowMs + rounding
    ? {
        ...told,
        allowed: true,
        remaining: Math.floor((windowMs - used + rounding) / share),
        resetMs: used,
        retryMs: 0
      }
    : { ...told, allowed: false, remaining: 0, resetMs: aheadMs, retryMs: used - windowMs }
}

/**
 * A number of calls in a window for each of many keys, by GCRA: all of them at once, then one as each share of the window has
 * passed. What is known of a key is one time, when its allowance is whole again; from then on it needs no place. A key may have a number of
 * its own, and another one from its next call on: the part of the window that it has used stays used.
 *
 * At most `maxKeys` have a place. No key loses one before its time, else whoever sends under many keys would set back
 * its own count: when all are taken, the keys without one share a single allowance.
 */
export class Allowances {
  private readonly wholeAt = new Map<string, number>()
  private sharedWholeAt = 0
  private sweptAt = Number.NEGATIVE_INFINITY
  private readonly limit: Limit

  constructor(limit: Limit) {
    this.limit = limit
  }

  /** How many keys have a place. */
  get size(): number {
    return this.wholeAt.size
  }

  /** Takes one call of the key's allowance, if there is one left: what is refused uses nothing. */
  take(key: string, nowMs: number, limit: Limit = this.limit): Verdict {
    const known = this.wholeAt.get(key)
    const placed = known !== undefined || this.makeRoom(nowMs)
    const verdict = verdictOf(limit, this.ahead(placed ? (known ?? 0) : this.sharedWholeAt, nowMs))
    if (placed) this.wholeAt.set(key, nowMs + verdict.resetMs)
    else this.sharedWholeAt = nowMs + verdict.resetMs
    return verdict
  }

  /** The refusal that is certain by what is known here alone; null: there may be some left. */
  refusal(key: string, nowMs: number, limit: Limit = this.limit): Verdict | null {
    const known = this.wholeAt.get(key)
    if (known === undefined) return null
    const verdict = verdictOf(limit, this.ahead(known, nowMs))
    return verdict.allowed ? null : verdict
  }

  /** Takes over what was answered, elsewhere, about a call made at `nowMs`. Never sets a key's count back. */
  learn(key: string, nowMs: number, told: Verdict, limit: Limit = this.limit): void {
    const known = this.wholeAt.get(key)
    if (known === undefined && !this.makeRoom(nowMs)) return
    const taken = told.allowed ? limit.windowMs / limit.calls : 0
    this.wholeAt.set(key, nowMs + Math.max(this.ahead(known ?? 0, nowMs) + taken, told.resetMs))
  }

  /** How long from now a time is. A clock that was set back must not make anybody wait for more than a window. */
  private ahead(wholeAt: number, nowMs: number): number {
    return Math.min(Math.max(wholeAt - nowMs, 0), this.limit.windowMs)
  }

  private makeRoom(nowMs: number): boolean {
    if (this.wholeAt.size < this.limit.maxKeys) return true
    if (Math.abs(nowMs - this.sweptAt) < sweepEveryMs) return false
    this.sweptAt = nowMs
    for (const [key, wholeAt] of this.wholeAt) if (wholeAt <= nowMs) this.wholeAt.delete(key)
    return this.wholeAt.size < this.limit.maxKeys
  }
}
