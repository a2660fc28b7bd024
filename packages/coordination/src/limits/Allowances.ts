import type { Limit, Verdict } from "./Limit.ts"

/** Half a microsecond: sums of fractions of a window are not exact. */
const rounding = 0.000_5

/** Interval at which a full table is searched for unused keys. */
const sweepEveryMs = 1_000

/** The verdict for a call, if the key's allowance is full again `aheadMs` after it. */
export const verdictOf = ({ calls, windowMs }: Limit, aheadMs: number): Verdict => {
  const share = windowMs / calls
  const used = aheadMs + share
  const common = { limit: calls, windowMs }
  return used <= windowMs + rounding
    ? {
        ...common,
        allowed: true,
        remaining: Math.floor((windowMs - used + rounding) / share),
        resetMs: used,
        retryMs: 0
      }
    : { ...common, allowed: false, remaining: 0, resetMs: aheadMs, retryMs: used - windowMs }
}

/**
 * Limits the calls of many keys by GCRA: the full number of calls at once, then one call per share of the window (window divided by calls).
 * The state of a key is the time at which its allowance is full again; after that time its entry is not needed. Each key may have its own limit,
 * which may change with its next call: the used part of the window stays used.
 *
 * At most `maxKeys` keys have an entry. No entry is removed early, because a client with many keys could otherwise reset its own count: if the
 * table is full, keys without an entry share a single allowance.
 */
export class Allowances {
  private readonly wholeAt = new Map<string, number>()
  private sharedWholeAt = 0
  private sweptAt = Number.NEGATIVE_INFINITY
  private readonly limit: Limit

  constructor(limit: Limit) {
    this.limit = limit
  }

  /** Number of keys with an entry. */
  get size(): number {
    return this.wholeAt.size
  }

  /** Takes one call from the key's allowance, if one is left. A refused call uses nothing. */
  take(key: string, nowMs: number, limit: Limit = this.limit): Verdict {
    const known = this.wholeAt.get(key)
    const placed = known !== undefined || this.makeRoom(nowMs)
    const verdict = verdictOf(limit, this.ahead(placed ? (known ?? 0) : this.sharedWholeAt, nowMs))
    if (placed) this.wholeAt.set(key, nowMs + verdict.resetMs)
    else this.sharedWholeAt = nowMs + verdict.resetMs
    return verdict
  }

  /** The refusal, if the local state alone is enough for it; null if calls may be left. */
  refusal(key: string, nowMs: number, limit: Limit = this.limit): Verdict | null {
    const known = this.wholeAt.get(key)
    if (known === undefined) return null
    const verdict = verdictOf(limit, this.ahead(known, nowMs))
    return verdict.allowed ? null : verdict
  }

  /** Adopts the verdict of another process or of Redis about a call made at `nowMs`. Never lowers a key's count. */
  learn(key: string, nowMs: number, verdict: Verdict, limit: Limit = this.limit): void {
    const known = this.wholeAt.get(key)
    if (known === undefined && !this.makeRoom(nowMs)) return
    const taken = verdict.allowed ? limit.windowMs / limit.calls : 0
    this.wholeAt.set(key, nowMs + Math.max(this.ahead(known ?? 0, nowMs) + taken, verdict.resetMs))
  }

  /** Milliseconds from now until a time. If the clock was set back, nobody waits for more than a window. */
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
