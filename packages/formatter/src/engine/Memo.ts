import { nobody, WeighedCache } from "@tidegate/runtime/WeighedCache"

/** About what is made of a text that is read once: some objects for each character. */
const usualBytes = (key: string): number => 2_000 + 200 * key.length

/**
 * What is made of a key, kept for the last `size` keys or so, as long as the process has room for it: patterns, formulas, date formats.
 * `bytes`: what it takes, where that is more than of a text that is read once.
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
