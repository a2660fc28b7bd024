import { createHash } from "node:crypto"

/**
 * Pseudo-random numbers in [0, 1) from the seed: xoshiro128** with the digest of the seed and the element's index. A repeated step gets
 * the same numbers.
 */
export const seeded = (seed: string, index: number): (() => number) => {
  const digest = createHash("sha256").update(`${seed}\u0000${index}`).digest()
  let a = digest.readInt32LE(0)
  let b = digest.readInt32LE(4)
  let c = digest.readInt32LE(8)
  let d = digest.readInt32LE(12) | 1
  const next = (): number => {
    const product = Math.imul(b, 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result >>> 0
  }
  // 53 bits, as in `Math.random`.
  return () => ((next() >>> 5) * 67_108_864 + (next() >>> 6)) / 9_007_199_254_740_992
}
