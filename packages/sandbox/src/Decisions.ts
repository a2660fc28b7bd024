import type { Path, Ran } from "./Messages.ts"

interface Version {
  equal: number
  noisy: number
  /** Since it was decided. */
  sealedCalls: number
  pinned: string | null
}

/** One call in so many is compared afterwards. */
const sampleEvery = 200
/** Comparisons that say nothing, because the code never does the same twice, before it is left in fresh worlds. */
const maxNoisy = 16
const noisyReason = "it gives something else each time it runs on the same request, so that nothing can be compared"
const maxVersions = 10_000

/**
 * Decides, once for each version of a code, whether it may run in a sealed realm. It may when it compiles there and comes to the same
 * as in a fresh world, over its first calls and a sample of the later ones; a call that fails there is run again in a
 * fresh world, which is what counts. Code that differs once is pinned to fresh worlds for good.
 *
 * What is known here is this process's own, and forgotten when many other codes were called since: then it is decided anew. That a code is
 * pinned is for the caller to remember. `firstCalls`: how many comparisons have to come out equal first.
 */
export const makeDecisions = (firstCalls: number) => {
  /** In the order of their last call. */
  const versions = new Map<string, Version>()

  const known = (key: string): Version => {
    const version = versions.get(key) ?? { equal: 0, noisy: 0, sealedCalls: 0, pinned: null }
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
      return ++version.sealedCalls % sampleEvery === 0 ? "compared" : "sealed"
    },
    /** Whether a call that ended so has to run again, compared. */
    isDoubtful: (key: string, { error, isSealed }: Ran): boolean => {
      if (!isSealed || error === null) return false
      // What was too slow or too large for the sealed realm may not be for a fresh one: it is decided anew.
      if (error.code === "TIMEOUT" || error.code === "MEMORY_LIMIT") known(key).equal = 0
      return true
    },
    /** Takes in what a comparison came to, if there was one; why the code is pinned, when it is. */
    learn: (key: string, { verdict }: Ran): string | null => {
      const version = known(key)
      if (verdict?.kind === "equal") version.equal++
      else if (verdict?.kind === "differs") version.pinned ??= verdict.reason
      else if (verdict?.kind === "noisy" && ++version.noisy >= maxNoisy) version.pinned ??= noisyReason
      return version.pinned
    }
  }
}
