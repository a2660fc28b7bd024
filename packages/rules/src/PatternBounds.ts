import { isUpTo } from "@tidegate/model/Characters"
import { patternCost } from "@tidegate/model/PatternCost"

/** What the patterns that are compiled together may cost: those of one filter, or of all rules of a connection as they are written. */

/** Characters of one pattern. */
const longest = 512
/** The longest that ever could be: what was stored then goes on. */
const longestStored = 1_024
/** Of all patterns together: ten milliseconds, or two or three times as much while the engine is new. */
const mostCost = 10_000

export class PatternBounds {
  readonly #longest: number
  #left: number

  private constructor(longest: number, cost: number) {
    this.#longest = longest
    this.#left = cost
  }

  /** Of what is written now. */
  static written(): PatternBounds {
    return new PatternBounds(longest, mostCost)
  }

  /** Of what is stored: it was within the limits of its time. */
  static stored(): PatternBounds {
    return new PatternBounds(longestStored, Number.POSITIVE_INFINITY)
  }

  /** Counts a pattern; why it cannot be one of them, otherwise. */
  refusal(pattern: string): string | null {
    if (!isUpTo(pattern, this.#longest)) return `the pattern is longer than ${this.#longest} characters`
    this.#left -= patternCost(pattern)
    return this.#left >= 0 ? null : "the patterns take too long to compile, all together"
  }
}
