import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parsePath } from "@tidegate/json/JsonPath"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import {
  DeduplicateRule,
  DelayRule,
  FilterRule,
  InlineTransformRule,
  LinkedTransformRule,
  RetryRule,
  type Rule,
  type RuleType,
  type TransformRule
} from "@tidegate/model/Rule"
import { Result, Schema } from "effect"
import { below } from "./ConditionInvalid.ts"
import { complain, type Complaint, decode } from "./Decode.ts"
import { allOf, type CompiledFilter, compileFilter, compilingFilter, judgedBy } from "./Filter.ts"
import { PatternBounds } from "./PatternBounds.ts"
import { compileRetry, type RetryPolicy } from "./Retry.ts"
import { isLinkAsRead } from "./StoredFilter.ts"

/** A connection's rules as a whole: validation, order and compiled form. */

/**
 * Why a rules array is invalid: the API's 400 RULE_INVALID. `rule_index` is the rule's index in the array as written,
 * null if the error concerns the array itself; `path` is the place in that rule, like `body.total.$gt`.
 */
export class RuleInvalid extends Schema.TaggedError<RuleInvalid>()("RuleInvalid", {
  rule_index: Schema.NullOr(Schema.Int),
  path: Schema.String,
  message: Schema.String
}) {}

const ruleInvalid = (rule_index: number | null, { path, message }: Complaint): RuleInvalid =>
  new RuleInvalid({ rule_index, path, message })

const invalid = (rule_index: number, complaint: Complaint): Result.Result<never, RuleInvalid> =>
  Result.fail(ruleInvalid(rule_index, complaint))

/** The order in which rules are evaluated, stored and read. */
const evaluationOrder: ReadonlyArray<RuleType> = ["deduplicate", "transform", "filter", "delay", "retry"]

/** Maximum number of rules of a connection. */
const maxRules = 50

type JudgedRules = Result.Result<ReadonlyArray<Rule>, readonly [RuleInvalid, ...ReadonlyArray<RuleInvalid>]>

/** An additional check of a rule that is valid by itself; returns null if it passes. */
type Further = (rule: Rule, written: unknown) => Complaint | null

/**
 * Validates rules. Returns them in their stored form, or the errors of all invalid ones. Stored form: defaults are filled in,
 * `transformation` becomes `transform`, and the rules are in evaluation order (filters among themselves as written). Conditions keep their
 * spelling; a null target counts as absent. A filter may have a `filter_id` instead of targets: the caller copies that
 * filter's conditions before it stores the rule. If such a rule is written back as it was read, it becomes a link again.
 * Each rule is compiled once, and all patterns share one limit, even if other errors exist. Resumable: yields after each rule.
 */
export function* judgingRules(input: unknown, further: Further = () => null): Resumable<JudgedRules> {
  const whole = (message: string) => Result.fail([ruleInvalid(null, { path: "", message })] as const)
  if (!Array.isArray(input)) return whole("must be an array")
  if (input.length > maxRules) return whole(`at most ${maxRules} rules are allowed`)
  const rules: Array<Rule> = []
  const faults: Array<RuleInvalid> = []
  const patterns = PatternBounds.written()
  for (const [index, written] of input.entries()) {
    if (index > 0) yield
    const result = normalizeRule(written, patterns)
    const fault = Result.isFailure(result)
      ? result.failure
      : (further(result.success, written) ?? repeated(result.success, rules))
    if (fault !== null) faults.push(ruleInvalid(index, fault))
    if (Result.isSuccess(result)) rules.push(result.success)
  }
  const [first, ...others] = faults
  return first === undefined
    ? Result.succeed(evaluationOrder.flatMap((type) => rules.filter((rule) => rule.type === type)))
    : Result.fail([first, ...others])
}

/** The same without pauses. */
export const judgeRules = (...given: Parameters<typeof judgingRules>): JudgedRules => runToEnd(judgingRules(...given))

const repeated = ({ type }: Rule, before: ReadonlyArray<Rule>): Complaint | null =>
  type !== "filter" && before.some((other) => other.type === type)
    ? { path: "type", message: `there can be only one ${type} rule` }
    : null

/** The same, but returns only the first error. */
export const normalizeRules = (input: unknown): Result.Result<ReadonlyArray<Rule>, RuleInvalid> =>
  Result.mapError(judgeRules(input), ([first]) => first)

const normalizeRule = (written: unknown, patterns: PatternBounds): Result.Result<Rule, Complaint> => {
  if (!isJsonObject(written)) return complain("", "a rule must be an object")
  switch (written.type) {
    case "deduplicate":
      return normalizeDeduplicate(withoutNullTargets(written), patterns)
    case "transform":
    case "transformation":
      return normalizeTransform({ ...written, type: "transform" })
    case "filter":
      return normalizeFilter(withoutNullTargets(written), patterns)
    case "delay":
      return decode(DelayRule, written, "this rule")
    case "retry":
      return normalizeRetry(written)
    default:
      return complain("type", `must be one of ${evaluationOrder.join(", ")}`)
  }
}

type Fields = { readonly [key: string]: unknown }

const targets: ReadonlyArray<string> = ["headers", "body", "query", "path"]

const withoutNullTargets = (rule: Fields): Fields =>
  Object.fromEntries(Object.entries(rule).filter(([key, value]) => value !== null || !targets.includes(key)))

const normalizeDeduplicate = (written: Fields, patterns: PatternBounds): Result.Result<Rule, Complaint> =>
  Result.gen(function* () {
    yield* compileFilter({ headers: written.headers, body: written.body }, { patterns })
    const rule = yield* decode(DeduplicateRule, written, "this rule")
    if (rule.include_fields !== undefined && rule.exclude_fields !== undefined) {
      return yield* complain("exclude_fields", "include_fields and exclude_fields cannot be used together")
    }
    for (const list of ["include_fields", "exclude_fields"] as const) {
      for (const [i, path] of (rule[list] ?? []).entries()) {
        if (!isRequestPath(path)) {
          return yield* complain(below(list, i), "is not a path into body, headers, query, path or method")
        }
      }
    }
    return rule
  })

/** Whether a text is a place in the request: `body.items[*].id`, `headers.x-event-id`, `query`. */
const isRequestPath = (text: string): boolean => {
  const [root, ...rest] = parsePath(text) ?? []
  if (root?.kind !== "key" || rest.some((segment) => segment.kind === "element")) return false
  return ["body", "headers", "query"].includes(root.key) || (["path", "method"].includes(root.key) && rest.length === 0)
}

const normalizeTransform = (written: Fields): Result.Result<Rule, Complaint> => {
  const linked = written.transformation_id !== undefined
  if (linked && written.transformation !== undefined) {
    return complain("transformation", "transformation and transformation_id cannot be used together")
  }
  return linked || written.transformation === undefined
    ? decode(LinkedTransformRule, written, "this rule")
    : decode(InlineTransformRule, written, "this rule")
}

const normalizeFilter = (written: Fields, patterns: PatternBounds): Result.Result<Rule, Complaint> =>
  Result.gen(function* () {
    const { body, headers, path, query } = written
    yield* compileFilter({ headers, body, query, path }, { patterns })
    const rule = yield* decode(FilterRule, written, "this rule")
    const conditions = targets.filter((target) => written[target] !== undefined)
    if (rule.filter_id === undefined) {
      if (conditions.length === 0) return yield* complain("", `a filter needs one of ${targets.join(", ")}`)
      if (rule.filter_snapshot !== undefined) {
        return yield* complain("filter_snapshot", "belongs to a filter_id")
      }
      return rule
    }
    if (rule.detached_from_filter !== undefined) {
      return yield* complain("detached_from_filter", "belongs to a rule whose filter is gone, and not to a filter_id")
    }
    if ((conditions.length > 0 || rule.filter_snapshot !== undefined) && !isLinkAsRead(rule)) {
      return yield* complain("filter_id", "the conditions are the linked filter's: leave the rule's own out")
    }
    return { type: "filter" as const, filter_id: rule.filter_id }
  })

const normalizeRetry = (written: Fields): Result.Result<Rule, Complaint> =>
  Result.gen(function* () {
    const rule = yield* decode(RetryRule, written, "this rule")
    yield* Result.mapError(compileRetry(rule), ({ index, message }) => ({
      path: below("response_status_codes", index),
      message
    }))
    return rule
  })

/**
 * Rules that take too long for ingress. Ingress commits a routing job for the connection instead of an event, and the connection's
 * actor evaluates these rules later, in this order.
 */
export interface SlowRules {
  readonly deduplicate: DeduplicateRule | null
  readonly transform: TransformRule | null
  /** Tests the transformed request, if there is a transformation. */
  readonly filter: CompiledFilter | null
}

/** A connection's rules in the form that routing uses. */
export interface CompiledRules {
  /**
   * The filter that ingress evaluates before it commits a request. Null if there is none, or if it belongs to `slow`:
   * after a transformation, because it tests the transformed request; and after a deduplication, although it needs
   * only the inbound request: duplicates are detected first, so a duplicate that would also fail the filter is recorded as
   * a duplicate.
   */
  readonly filter: CompiledFilter | null
  /** Null if ingress can decide everything. */
  readonly slow: SlowRules | null
  /** Milliseconds from an event's creation to its first attempt. */
  readonly delay: number
  readonly retry: RetryPolicy | null
}

/**
 * Compiles stored rules. They were valid when they were written, so an error means that they were changed since, or that
 * the link of a filter was never resolved. Fails closed, because a missing filter would pass every request. Resumable, like `compilingFilter`.
 */
export function* compilingRules(rules: ReadonlyArray<Rule>): Resumable<Result.Result<CompiledRules, RuleInvalid>> {
  const filters: Array<CompiledFilter> = []
  let deduplicate: DeduplicateRule | null = null
  let transform: TransformRule | null = null
  let delay = 0
  let retry: RetryPolicy | null = null
  for (const [index, rule] of rules.entries()) {
    switch (rule.type) {
      case "deduplicate":
        deduplicate = rule
        break
      case "transform":
        transform = rule
        break
      case "filter": {
        const { headers, body, query, path } = rule
        const compiled = yield* compilingFilter({ headers, body, query, path }, { patterns: PatternBounds.stored() })
        if (Result.isFailure(compiled)) return invalid(index, compiled.failure)
        if (compiled.success.tests.length === 0)
          return invalid(index, { path: "", message: "the filter has no target" })
        const { filter_id, filter_snapshot } = rule
        filters.push(
          filter_id === undefined || filter_snapshot === undefined
            ? compiled.success
            : judgedBy(compiled.success, { filter_id, hash: filter_snapshot.hash })
        )
        break
      }
      case "delay":
        delay = rule.delay
        break
      case "retry": {
        const compiled = compiledRetry(rule, index)
        if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
        retry = compiled.success
        break
      }
    }
  }
  const filter = filters.length === 0 ? null : allOf(filters)
  const slow = deduplicate !== null || transform !== null
  return Result.succeed({
    filter: slow ? null : filter,
    slow: slow ? { deduplicate, transform, filter } : null,
    delay,
    retry
  })
}

/** The same without pauses. */
export const compileRules = (rules: ReadonlyArray<Rule>): Result.Result<CompiledRules, RuleInvalid> =>
  runToEnd(compilingRules(rules))

const compiledRetry = (rule: RetryRule, index: number): Result.Result<RetryPolicy, RuleInvalid> =>
  Result.mapError(
    compileRetry(rule),
    ({ index: at, message }) =>
      new RuleInvalid({ rule_index: index, path: below("response_status_codes", at), message })
  )

/** The retry policy of stored rules; the other rules are not compiled. */
export const retryOf = (rules: ReadonlyArray<Rule>): Result.Result<RetryPolicy | null, RuleInvalid> => {
  const index = rules.findIndex(({ type }) => type === "retry")
  return index === -1 ? Result.succeed(null) : compiledRetry(rules[index] as RetryRule, index)
}
