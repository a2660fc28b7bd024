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
 * The filter engine: connection rules, stored filters, custom-response matchers and workflow conditions all use it. The
 * language is described at the compiler (Condition.ts). A compiled condition is synchronous code without side effects, and its work per
 * document is limited (Evaluation.ts).
 */

export interface FilterOptions {
  /** The limits of `$regex` patterns, shared by everything that is compiled with them. Default: the limits for new input. */
  readonly patterns?: PatternBounds
}

/**
 * Compiles one condition on one document. `subject` is the kind of document: `document` (any JSON, the default),
 * `record` (an object whose keys are names, like a parsed query or a run's context), `headers`, or `text`.
 * The matcher must not be called from within itself. Resumable, like `compilingFilter`.
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

/** The parts of a request that a filter can test, in the order in which they are reported. `method` is for matchers only. */
export type FilterTarget = "method" | "headers" | "body" | "query" | "path"

/** The request as a filter reads it. */
export interface FilterInput {
  readonly method?: string
  /** Names in lower case, as the HTTP server provides them: other spellings are not found. */
  readonly headers: Values
  /** The parsed query; a repeated key is an array. */
  readonly query: Values
  readonly path: string
  /**
   * The parsed body, or its whole text if it is not JSON. Called only if the filter tests the body, and at most
   * once per evaluation: a caller that evaluates several filters should cache the result.
   */
  readonly body: () => Json
}

/** The stored filter, and its version, from which conditions were copied. */
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

/** One or several filters; a request has to pass all of them. Created by `compileFilter` and `allOf`. */
export class CompiledFilter {
  readonly tests: ReadonlyArray<TargetTest>
  private readonly scope = new Scope()

  /** Whether the filter tests the body, which may have to be parsed first. */
  readonly looksAtBody: boolean

  /** Steps of the last evaluation; at most a million. */
  cost = 0

  constructor(tests: ReadonlyArray<TargetTest>) {
    this.tests = tests
    this.looksAtBody = tests.some(({ target }) => target === "body")
  }

  /**
   * The targets that do not match, each once, followed by the stored filters of the failed conditions; empty if the request passes.
   * Every target is tested, because an ignored event lists all that failed. Must not be called from within `input.body`.
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
 * The index of the first of `filters` that `input` passes, or -1. The filters share one step limit; after it is used up no condition matches. A
 * filter ends at its first target that does not match, and the body is tested last, because it may have to be parsed. Must not be
 * called from within `input.body`.
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

/** Shared, because evaluations are synchronous and run one at a time. */
const sharedScope = new Scope()

/** The same filter, but its failures name the stored filter. */
export const judgedBy = (filter: CompiledFilter, by: JudgedBy): CompiledFilter =>
  new CompiledFilter(filter.tests.map((one) => ({ ...one, by })))

/** A filter that passes a request if all of `filters` do; they share one step limit. */
export const allOf = (filters: ReadonlyArray<CompiledFilter>): CompiledFilter =>
  new CompiledFilter(filters.flatMap((filter) => filter.tests))

type Conditions = { readonly [target in FilterTarget]?: unknown }

/**
 * Compiles the conditions of a filter or a matcher. All given targets must match; absent targets are not tested. `method` also accepts a
 * list of alternatives. The path of an error begins with the target: `body.total.$gt`. A filter without targets matches everything; the caller
 * decides whether that is allowed. Resumable: yields after each pattern.
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

/** The same without pauses, for new input, whose patterns are limited. */
export const compileFilter = (
  conditions: Conditions,
  options?: FilterOptions
): Result.Result<CompiledFilter, ConditionInvalid> => runToEnd(compilingFilter(conditions, options))

/** The same without pauses. */
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
