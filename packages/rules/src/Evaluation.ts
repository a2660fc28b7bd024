/**
 * What a compiled condition runs on. A condition is a tree of closures, built once; matching a document allocates
 * nothing unless it fails, and is bounded whatever the document: `Scope` counts the work.
 */

/** Whether a value that is there (never `undefined`) satisfies a condition. */
export type Test = (value: unknown, scope: Scope) => boolean

export interface Condition {
  readonly test: Test
  /** What the condition says of a key that is not there: only `$exist: false` says yes. */
  readonly absent: boolean
}

/**
 * Work allowed to one evaluation, in steps of 5–35 ns, so that it is over long before 50 ms: everybody waits for it. A document that needs more does not
 * match, whatever the condition. Fails closed, because what an operator wanted kept out cannot be called back once it
 * is delivered, while an ignored event stays on record and can be replayed.
 */
export const stepsPerEvaluation = 1_000_000

/** Arrays in arrays, and levels of a deep comparison: far above real data, far below the stack's end. */
const maxNesting = 64

/** The state of one evaluation. One instance serves one compiled condition or filter, one evaluation at a time. */
export class Scope {
  /** The document `$ref` reads from. */
  root: unknown = null
  /** How many arrays enclose the value being tested, and the index taken in each: what `[$index]` stands for. */
  depth = 0
  readonly indexes: Array<number> = []
  private steps = 0

  begin(): void {
    this.steps = stepsPerEvaluation
  }

  /** Points at the next document of the evaluation. */
  over(root: unknown): void {
    this.root = root
    this.depth = 0
  }

  /** Forgets the document, so that a compiled condition keeps none alive. */
  end(): void {
    this.root = null
  }

  /** Pays for `steps` of work; false when the evaluation has used up what it may. */
  spend(steps: number): boolean {
    this.steps -= steps
    return this.steps >= 0
  }

  /** What the evaluation has cost so far. */
  get spent(): number {
    return Math.min(stepsPerEvaluation - this.steps, stepsPerEvaluation)
  }

  /** Whether the evaluation stayed within its limits: a result reached beyond them does not count. */
  get completed(): boolean {
    return this.steps >= 0
  }

  /** Steps into an array, or into a level of a deep comparison; false when that is too deep or too much work. */
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

/** Whether `test` holds for some element of `values`. */
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

/** The test on the value itself or, for an array, on any of its elements (and of the arrays in it). */
export const anyElement = (test: Test): Test => {
  const any: Test = (value, scope) => (Array.isArray(value) ? someElement(value, any, scope) : test(value, scope))
  return any
}

/** Like `anyElement`, but an array is also tested as a whole. */
export const anyNode = (test: Test): Test => {
  const any: Test = (value, scope) => test(value, scope) || (Array.isArray(value) && someElement(value, any, scope))
  return any
}
