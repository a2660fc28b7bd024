import type { Path, Ran } from "./Messages.ts"

interface Version {
  equal: number
  noisy: number
  /** Calls in the reused context since the last comparison, and when that was (ms, monotonic). */
  sealedCalls: number
  comparedAt: number
  pinned: string | null
}

/** One call in this many is compared afterwards, but none so soon after the last one (ms): a comparison costs as much as forty calls. */
const sampleEvery = 200
const samplePauseMs = 1_000
/** Inconclusive comparisons, because the code is not deterministic, before the code stays in fresh contexts. */
const maxNoisy = 16
const noisyReason = "it gives something else each time it runs on the same request, so that nothing can be compared"
const maxVersions = 10_000

/**
 * Decides for each version of a code whether it may run in a reused context ("sealed"). It may if it compiles there and gives the same
 * results as in a fresh context, for its first calls and for a sample of the later ones. A call that fails there runs again in a fresh
 * context, whose result counts. Code that differs once is pinned to fresh contexts for good.
 *
 * Decisions are kept in this process only, and dropped when many other codes were called since: then the code is compared again. The
 * caller has to store that a code is pinned. `firstCalls`: number of equal comparisons that are required first. `now`: a monotonic clock (ms).
 */
export const makeDecisions = (firstCalls: number, now = (): number => performance.now()) => {
  /** The least recently called first. */
  const versions = new Map<string, Version>()

  const known = (key: string): Version => {
    const version = versions.get(key) ?? {
      equal: 0,
      noisy: 0,
      sealedCalls: 0,
      comparedAt: Number.NEGATIVE_INFINITY,
      pinned: null
    }
    versions.delete(key)
    versions.set(key, version)
    for (const oldest of versions.keys()) {
      if (versions.size <= maxVersions) break
      versions.delete(oldest)
    }
    return version
  }
  return {
    /** How the next call of this code runs. */
    path: (key: string): Path => {
      const version = known(key)
      if (version.pinned !== null) return "fresh"
      if (version.equal < firstCalls) return "compared"
      if (++version.sealedCalls < sampleEvery) return "sealed"
      const at = now()
      if (at - version.comparedAt < samplePauseMs) return "sealed"
      version.sealedCalls = 0
      version.comparedAt = at
      return "compared"
    },
    /** Whether a call with this result has to run again, compared. */
    isDoubtful: (key: string, { error, isSealed }: Ran): boolean => {
      if (!isSealed || error === null) return false
      // The code may be fast or small enough in a fresh context: it is compared again from the start.
      if (error.code === "TIMEOUT" || error.code === "MEMORY_LIMIT") known(key).equal = 0
      return true
    },
    /** Records the result of a comparison, if there was one. Returns why the code is pinned, or null. */
    learn: (key: string, { verdict }: Ran): string | null => {
      const version = known(key)
      if (verdict?.kind === "equal") version.equal++
      else if (verdict?.kind === "differs") version.pinned ??= verdict.reason
      else if (verdict?.kind === "noisy" && ++version.noisy >= maxNoisy) version.pinned ??= noisyReason
      return version.pinned
    }
  }
}
