/** How often a page reads again what is live. */
interface Pace {
  /** The wait after a quick answer, and the longest one (ms). */
  readonly minMs: number
  readonly maxMs: number
  /** The longer an answer takes, the longer the wait: while it is below the longest one, this share of the time is spent on answers. */
  readonly share: number
}

/**
 * The wait before the next reading (ms), after one that took `tookMs`. Each is up to a tenth longer by chance: pages that were opened
 * together do not ask together for ever.
 */
export const waitAfter = (tookMs: number, { maxMs, minMs, share }: Pace): number =>
  Math.min(maxMs, Math.max(minMs, tookMs / share)) * (1 + Math.random() / 10)
