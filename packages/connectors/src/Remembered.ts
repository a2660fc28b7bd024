import { createHash } from "node:crypto"

export const digestOf = (...parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("base64url")

const maxRemembered = 1_000

/**
 * Returns the same function with a cache of its results. Each read of a destination checks its stored settings again, and parsing them for a whole
 * page would block the event loop. The number of entries is limited; digests and results are short. A digest reveals nothing of a key.
 */
export const remembered = <A extends string | null>(
  make: (...texts: ReadonlyArray<string>) => A
): ((...texts: ReadonlyArray<string>) => A) => {
  const known = new Map<string, A>()
  return (...texts) => {
    const digest = digestOf(...texts)
    const before = known.get(digest)
    if (before !== undefined) return before
    const made = make(...texts)
    if (known.size >= maxRemembered) known.clear()
    known.set(digest, made)
    return made
  }
}
