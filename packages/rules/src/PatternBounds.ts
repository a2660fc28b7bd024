import { isUpTo } from "@tidegate/model/Characters"
import { patternCost } from "@tidegate/runtime/PatternCost"

/** Cost limits of a group of patterns: those of one filter, of all newly written rules of a connection, or of all conditions of a workflow. */

/** Characters of one pattern. */
const longest = 512
/** The longest pattern that any version allowed: stored patterns stay valid. */
const longestStored = 1_024
/**
 * Microseconds, for one pattern and for all patterns of a filter or of a connection's rules together: ten milliseconds, or two to three times as
 * much while the engine is cold.
 */
const maxCost = 10_000
/**
 * Fixed cost of each pattern, and characters that are read per unit of cost: flags alone cost nothing by the estimate, but thousands of such
 * patterns take a tenth of a second.
 */
const smallest = 4
const charactersRead = 16
/** For all patterns of a workflow, which is compiled in several event-loop iterations. */
const maxCostOfWorkflow = 100_000

export class PatternBounds {
  readonly #longest: number
  readonly #most: number
  #left: number

  private constructor(longest: number, one: number, all: number) {
    this.#longest = longest
    this.#most = one
    this.#left = all
  }

  /** Limits for new input. */
  static written(): PatternBounds {
    return new PatternBounds(longest, maxCost, maxCost)
  }

  /** Limits for a new workflow. */
  static ofWorkflow(): PatternBounds {
    return new PatternBounds(longest, maxCost, maxCostOfWorkflow)
  }

  /**
   * Limits for stored patterns, which were valid when they were written. Their total is not limited, so they are compiled in several event-loop
   * iterations.
   */
  static stored(): PatternBounds {
    return new PatternBounds(longestStored, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  }

  /** Whether the limits are those of stored patterns, so that newer limits do not apply. */
  get isStored(): boolean {
    return this.#longest === longestStored
  }

  /** Whether the total is exceeded. The error is reported once, not for each further pattern. */
  get isExceeded(): boolean {
    return this.#left < 0
  }

  /** Counts a pattern. Returns why it is refused, or null. */
  refusal(pattern: string): string | null {
    if (!isUpTo(pattern, this.#longest)) return `the pattern is longer than ${this.#longest} characters`
    const cost = patternCost(pattern) + smallest + pattern.length / charactersRead
    if (cost > this.#most) return "the pattern takes too long to compile"
    this.#left -= cost
    return this.#left >= 0 ? null : "the patterns take too long to compile, all together"
  }
}
