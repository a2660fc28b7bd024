import { isUpTo } from "@tidegate/model/Characters"
import { patternCost } from "@tidegate/runtime/PatternCost"

/** What patterns may cost that belong together: those of one filter, of all rules of a connection as they are written, or of all conditions of a workflow. */

/** Characters of one pattern. */
const longest = 512
/** The longest that ever could be: what was stored then goes on. */
const longestStored = 1_024
/** Of one pattern, and of all of a filter or of a connection's rules: ten milliseconds, or two or three times as much while the engine is new. */
const maxCost = 10_000
/** What each pattern costs, however little is in it, and what reading it does: flags alone come to nothing, and thousands of them to a tenth of a second. */
const smallest = 4
const charactersRead = 16
/** Of all of a workflow, which is compiled in turns. */
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

  /** Of what is written now. */
  static written(): PatternBounds {
    return new PatternBounds(longest, maxCost, maxCost)
  }

  /** Of a workflow that is written now. */
  static ofWorkflow(): PatternBounds {
    return new PatternBounds(longest, maxCost, maxCostOfWorkflow)
  }

  /** Of what is stored: it was within the limits of its time. It is compiled in turns, because there is no bound of all. */
  static stored(): PatternBounds {
    return new PatternBounds(longestStored, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
  }

  /** Whether it is of what is stored, and need not keep to what is the limit now. */
  get isStored(): boolean {
    return this.#longest === longestStored
  }

  /** Whether they are more than there may be: whoever was told so once need not hear it of each. */
  get isExceeded(): boolean {
    return this.#left < 0
  }

  /** Counts a pattern; why it cannot be one of them, otherwise. */
  refusal(pattern: string): string | null {
    if (!isUpTo(pattern, this.#longest)) return `the pattern is longer than ${this.#longest} characters`
    const cost = patternCost(pattern) + smallest + pattern.length / charactersRead
    if (cost > this.#most) return "the pattern takes too long to compile"
    this.#left -= cost
    return this.#left >= 0 ? null : "the patterns take too long to compile, all together"
  }
}
