import { createHash } from "node:crypto"

export const digestOf = (...parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("base64url")

const mostRemembered = 1_000

/**
 * The same function, which knows what it has returned: each read of a destination judges its stored settings again, and a page of them would
 * hold the event loop by parsing. Bounded in number, because digests and results are short; a digest shows nothing of a key.
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
    if (known.size >= mostRemembered) known.clear()
    known.set(digest, made)
    return made
  }
}
