/**
 * The runtime of compiled conditions. A condition is a tree of closures that is built once. Matching allocates
 * nothing unless the match fails, and its cost is limited for any document: `Scope` counts the steps.
 */

/** Whether an existing value (never `undefined`) satisfies a condition. */
export type Test = (value: unknown, scope: Scope) => boolean

export interface Condition {
  readonly test: Test
  /** The result for a missing key: true only for `$exist: false`. */
  readonly absent: boolean
}

/**
 * Steps of 5–35 ns that one evaluation may take, so that it ends well before 50 ms: it blocks the event loop. A document that needs more does not
 * match, whatever the condition is. Fails closed, because an unwanted delivery cannot be recalled, while an ignored event stays on record and can
 * be replayed.
 */
export const stepsPerEvaluation = 1_000_000

/** Nested arrays, and levels of a deep comparison: far above real data, and far below a stack overflow. */
const maxNesting = 64

/** The state of one evaluation. Each compiled condition or filter has one instance, for one evaluation at a time. */
export class Scope {
  /** The document from which `$ref` reads. */
  root: unknown = null
  /** Number of arrays around the tested value, and the index in each: the values of `[$index]`. */
  depth = 0
  readonly indexes: Array<number> = []
  private steps = 0

  begin(): void {
    this.steps = stepsPerEvaluation
  }

  /** Sets the next document of the evaluation. */
  over(root: unknown): void {
    this.root = root
    this.depth = 0
  }

  /** Drops the document, so that a compiled condition does not keep it in memory. */
  end(): void {
    this.root = null
  }

  /** Counts `steps` of work; false if the limit is used up. */
  spend(steps: number): boolean {
    this.steps -= steps
    return this.steps >= 0
  }

  /** Steps of the evaluation so far. */
  get spent(): number {
    return Math.min(stepsPerEvaluation - this.steps, stepsPerEvaluation)
  }

  /** Whether the evaluation stayed within its limits; otherwise its result is not used. */
  get completed(): boolean {
    return this.steps >= 0
  }

  /** Enters an array, or a level of a deep comparison; false if it is too deep or too much work. */
  enter(size: number): boolean {
    if (this.depth === maxNesting) this.steps = -1
    if (!this.spend(size + 1)) return false
    this.depth++
    return true
  }

  at(index: number): void {
    this.indexes[this.depth - 1] = index
  }

  leave(): void {
    this.depth--
  }
}

/** Whether some element of `values` passes `test`. */
export const someElement = (values: ReadonlyArray<unknown>, test: Test, scope: Scope): boolean => {
  if (!scope.enter(values.length)) return false
  let found = false
  for (let i = 0; i < values.length && !found; i++) {
    scope.at(i)
    found = test(values[i], scope)
  }
  scope.leave()
  return found
}

/** Applies the test to the value itself or, for an array, to each of its elements (and of the arrays in it). */
export const anyElement = (test: Test): Test => {
  const any: Test = (value, scope) => (Array.isArray(value) ? someElement(value, any, scope) : test(value, scope))
  return any
}

/** Like `anyElement`, but an array is also tested as a whole. */
export const anyNode = (test: Test): Test => {
  const any: Test = (value, scope) => test(value, scope) || (Array.isArray(value) && someElement(value, any, scope))
  return any
}
