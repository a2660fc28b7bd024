import { nobody, WeighedCache } from "@tidegate/runtime/WeighedCache"

/** Estimated bytes of a parsed text: several objects for each character. */
const usualBytes = (key: string): number => 2_000 + 200 * key.length

/**
 * Caches the results for about the last `size` keys, if the process's caches have capacity: patterns, formulas, date formats.
 * `bytes`: the size of a result, if it exceeds that of a parsed text.
 */
export const memo = <A>(
  size: number,
  make: (key: string) => A,
  bytes: (key: string) => number = usualBytes
): ((key: string) => A) => {
  const kept = new WeighedCache<string, { readonly made: A }>(size)
  return (key) => {
    const found = kept.get(key)
    if (found !== undefined) return found.made
    return kept.set(key, { made: make(key) }, { bytes: bytes(key), owner: nobody }).made
  }
}
