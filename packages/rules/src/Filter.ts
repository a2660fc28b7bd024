import { isJsonObject } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import type { Values } from "@tidegate/model/Message"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import { Result } from "effect"
import { compilingCondition, type Subject } from "./Condition.ts"
import { ConditionInvalid, refuse } from "./ConditionInvalid.ts"
import { Scope, type Test } from "./Evaluation.ts"
import { PatternBounds } from "./PatternBounds.ts"
import { ConditionBounds } from "./ConditionBounds.ts"

/**
 * The filter engine: connection rules, stored filters, custom-response matchers and workflow conditions all run on it.
 * The language is described at the compiler (Condition.ts); a compiled condition is plain synchronous code without
 * side effects, and its work per document is bounded (Evaluation.ts).
 */

export interface FilterOptions {
  /** What its `$regex` patterns may be, shared by all that are compiled with it; those of what is written now unless told. */
  readonly patterns?: PatternBounds
}

/**
 * One condition over one document, compiled. `subject` says what the document is: `document` (any JSON, the default),
 * `record` (an object whose keys are names, like a parsed query or a run's context), `headers`, or `text`.
 * The matcher must not be called from within itself. In parts of a pattern each, as `compilingFilter`.
 */
export const compilingConditions = (
  conditions: unknown,
  options?: FilterOptions & { readonly subject?: Exclude<Subject, "nested"> }
): Resumable<Result.Result<(document: Json) => boolean, ConditionInvalid>> =>
  attempt(function* () {
    const patterns = options?.patterns ?? PatternBounds.written()
    new ConditionBounds(patterns.isStored).check(conditions, "")
    const subject = options?.subject ?? "document"
    const { test } = yield* compilingCondition(conditions, subject, "", patterns)
    const scope = new Scope()
    return (document) => {
      scope.begin()
      scope.over(document)
      const matched = test(document, scope) && scope.completed
      scope.end()
      return matched
    }
  })

/** The parts of a request a filter looks at, in the order they are reported. `method` is for matchers only. */
export type FilterTarget = "method" | "headers" | "body" | "query" | "path"

/** What a filter is asked about. */
export interface FilterInput {
  readonly method?: string
  /** Names in lower case, as the HTTP server gives them: a header in another spelling is not found. */
  readonly headers: Values
  /** The parsed query; a repeated key is an array. */
  readonly query: Values
  readonly path: string
  /**
   * The parsed body, or its whole text when it is not JSON. Called only by a filter that looks at the body, at most
   * once per evaluation: whoever evaluates several filters remembers the result.
   */
  readonly body: () => Json
}

/** The stored filter that conditions were copied of, and its version. */
export interface JudgedBy {
  readonly filter_id: string
  readonly hash: string
}

interface TargetTest {
  readonly target: FilterTarget
  readonly test: Test
  /** Null: the conditions are the rule's own. */
  readonly by: JudgedBy | null
}

const none: ReadonlyArray<FilterTarget | JudgedBy> = []

/** One or several filters, all of which must let a request pass. Made by `compileFilter` and `allOf`. */
export class CompiledFilter {
  readonly tests: ReadonlyArray<TargetTest>
  private readonly scope = new Scope()

  /** Whether it asks for the body, which may have to be parsed first. */
  readonly looksAtBody: boolean

  /** Of the last time that it was asked, in steps; one evaluation has at most a million. */
  cost = 0

  constructor(tests: ReadonlyArray<TargetTest>) {
    this.tests = tests
    this.looksAtBody = tests.some(({ target }) => target === "body")
  }

  /**
   * The targets that do not match, each once, and behind them the stored filters whose they are; none when the request passes.
   * Every target is looked at, because an ignored event lists all that failed. Must not be called from within `input.body`.
   */
  failingTargets(input: FilterInput): ReadonlyArray<FilterTarget | JudgedBy> {
    const { scope, tests } = this
    let failing: Array<FilterTarget> | undefined
    let by: Array<JudgedBy> | undefined
    let body: Json | undefined
    scope.begin()
    for (let i = 0; i < tests.length; i++) {
      const { by: stored, target, test } = tests[i]!
      if (target === "body" && body === undefined) body = input.body()
      const value = target === "body" ? body : input[target]
      scope.over(value)
      if (value !== undefined && test(value, scope) && scope.completed) continue
      if (failing === undefined) failing = [target]
      else if (!failing.includes(target)) failing.push(target)
      if (stored !== null && by?.includes(stored) !== true) (by ??= []).push(stored)
    }
    scope.end()
    this.cost = scope.spent
    return failing === undefined ? none : by === undefined ? failing : [...failing, ...by]
  }
}

/**
 * The index of the first of `filters` that lets `input` pass, or -1; the limit on work is one for them together, and
 * behind the one that exceeds it no condition holds. A filter is left at its first target that does not match, and the body, which may have to be parsed first, is looked at
 * last. Must not be called from within `input.body`.
 */
export const firstPassing = (filters: ReadonlyArray<CompiledFilter>, input: FilterInput): number => {
  let body: Json | undefined
  sharedScope.begin()
  const passes = ({ target, test }: TargetTest): boolean => {
    if (target === "body" && body === undefined) body = input.body()
    const value = target === "body" ? body : input[target]
    sharedScope.over(value)
    return value !== undefined && test(value, sharedScope) && sharedScope.completed
  }
  const found = filters.findIndex(({ tests }) => {
    for (let i = 0; i < tests.length; i++) if (tests[i]!.target !== "body" && !passes(tests[i]!)) return false
    for (let i = 0; i < tests.length; i++) if (tests[i]!.target === "body" && !passes(tests[i]!)) return false
    return true
  })
  sharedScope.end()
  return found
}

/** Evaluations are synchronous and one at a time. */
const sharedScope = new Scope()

/** The same filter, which tells of what it does not let pass by whose conditions. */
export const judgedBy = (filter: CompiledFilter, by: JudgedBy): CompiledFilter =>
  new CompiledFilter(filter.tests.map((one) => ({ ...one, by })))

/** The filter that lets pass what all of `filters` let pass; the limit on work is one for them together. */
export const allOf = (filters: ReadonlyArray<CompiledFilter>): CompiledFilter =>
  new CompiledFilter(filters.flatMap((filter) => filter.tests))

type Conditions = { readonly [target in FilterTarget]?: unknown }

/**
 * Compiles the conditions of a filter or a matcher, in parts of a pattern each; all targets given must match, and a target that is absent is not
 * looked at. `method` takes a list too, meaning one of it. The path of an error starts with the target:
 * `body.total.$gt`. A filter without any target matches everything here: whether that is allowed is the caller's rule.
 */
export const compilingFilter = (
  conditions: Conditions,
  options?: FilterOptions
): Resumable<Result.Result<CompiledFilter, ConditionInvalid>> =>
  attempt(function* () {
    const patterns = options?.patterns ?? PatternBounds.written()
    const limits = new ConditionBounds(patterns.isStored)
    const tests: Array<TargetTest> = []
    const add = function* (
      target: FilterTarget,
      subject: Exclude<Subject, "nested">,
      condition: unknown
    ): Resumable<void> {
      if (condition === undefined) return
      limits.check(condition, target)
      if ((subject === "headers" || subject === "record") && !isJsonObject(condition)) {
        refuse(target, "takes an object")
      }
      tests.push({ target, test: (yield* compilingCondition(condition, subject, target, patterns)).test, by: null })
    }
    yield* add("method", "text", Array.isArray(conditions.method) ? { $in: conditions.method } : conditions.method)
    yield* add("headers", "headers", conditions.headers)
    yield* add("body", "document", conditions.body)
    yield* add("query", "record", conditions.query)
    yield* add("path", "text", conditions.path)
    return new CompiledFilter(tests)
  })

/** The same at once, of what is written now: patterns are bounded then. */
export const compileFilter = (
  conditions: Conditions,
  options?: FilterOptions
): Result.Result<CompiledFilter, ConditionInvalid> => runToEnd(compilingFilter(conditions, options))

/** As `compileFilter`. */
export const compileConditions = (
  ...given: Parameters<typeof compilingConditions>
): Result.Result<(document: Json) => boolean, ConditionInvalid> => runToEnd(compilingConditions(...given))

function* attempt<A>(compile: () => Resumable<A>): Resumable<Result.Result<A, ConditionInvalid>> {
  try {
    return Result.succeed(yield* compile())
  } catch (error) {
    if (error instanceof ConditionInvalid) return Result.fail(error)
    throw error
  }
}
