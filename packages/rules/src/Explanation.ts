import { isJsonObject } from "@tidegate/json/ExactNumber"
import { positionOf } from "@tidegate/json/JsonPath"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { FilterConditions, Json } from "@tidegate/model/Rule"
import { Result } from "effect"
import { compilingCondition, type Subject, takes } from "./Condition.ts"
import { below, type ConditionInvalid } from "./ConditionInvalid.ts"
import { Scope } from "./Evaluation.ts"
import { compilingFilter, type FilterInput } from "./Filter.ts"
import { PatternBounds } from "./PatternBounds.ts"
import { operatorOf } from "./Operators.ts"
import { type ConditionTarget, conditionTargets } from "./StoredFilter.ts"

/**
 * Explains why a request passes a filter or not. Each operator is evaluated alone, by the filter engine itself, at its place. So
 * the explanation of an operator is always the engine's own result.
 */

/** The result of one operator. */
export interface Explained {
  readonly target: ConditionTarget
  /** Path of the value within its target; empty for the target itself. */
  readonly path: string
  /** Null for a list, of which each item has to be matched by some element, and for an object that one element has to match completely. */
  readonly operator: string | null
  readonly expected: Json
  /** The value that was found; null if there is none. In an array, the values of its first elements. */
  readonly actual: Json
  readonly matched: boolean
}

export interface Explanation {
  readonly matched: boolean
  /** Null: the filter has no condition on this target. */
  readonly targets: Readonly<Record<ConditionTarget, boolean | null>>
  readonly explanation: ReadonlyArray<Explained>
}

/** Operators in an explanation; the conditions may have more. */
export const maxExplained = 50

/** Characters of a value that are shown. */
export const shownCharacters = 200

/** Characters and values that are copied before a value is cut, because it may be as large as a request. */
const looked = { characters: 1_000, values: 100 }

/** Places that are searched for the values in arrays. */
const maxPlaces = 1_000
const maxElements = 20

/** Returns a value that is safe to show, by its path: without secrets. */
export type Shown = (path: string, value: Json) => Json

type Fields = { readonly [key: string]: unknown }

const subjects = { headers: "headers", body: "document", query: "record", path: "text" } as const

const isObject = (value: unknown): value is Fields => isJsonObject(value)

/**
 * Evaluates a request by conditions and explains the result. The evaluation is the same as for a connection, with the same limits. The
 * explanation may take as many steps again, and ends at that limit. Resumable: yields for each operator.
 */
export function* explain(
  conditions: FilterConditions,
  input: FilterInput,
  shown: Shown
): Resumable<Result.Result<Explanation, ConditionInvalid>> {
  const compiled = yield* compilingFilter(conditions, { patterns: PatternBounds.stored() })
  if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
  yield
  const failing: ReadonlyArray<unknown> = compiled.success.failingTargets(input)
  const targets = Object.fromEntries(
    conditionTargets.map((target) => [target, conditions[target] === undefined ? null : !failing.includes(target)])
  ) as Record<ConditionTarget, boolean | null>
  const explanation: Array<Explained> = []
  const scope = new Scope()
  scope.begin()
  for (const target of conditionTargets) {
    const condition = conditions[target]
    if (condition === undefined) continue
    const document = target === "body" ? input.body() : input[target]
    yield* new Explainer(target, document, scope, explanation, shown).all(condition)
  }
  scope.end()
  return Result.succeed({ matched: failing.length === 0, targets, explanation })
}

class Explainer {
  readonly #target: ConditionTarget
  readonly #document: Json
  readonly #scope: Scope
  readonly #found: Array<Explained>
  readonly #shown: Shown

  constructor(target: ConditionTarget, document: Json, scope: Scope, found: Array<Explained>, shown: Shown) {
    this.#target = target
    this.#document = document
    this.#scope = scope
    this.#found = found
    this.#shown = shown
  }

  *all(condition: unknown): Resumable<void> {
    yield* this.#value(condition, subjects[this.#target], [], "")
  }

  get #isOver(): boolean {
    return this.#found.length >= maxExplained || !this.#scope.completed
  }

  /** Whether every operator in the condition matches by itself. */
  *#value(condition: unknown, subject: Subject, keys: ReadonlyArray<string>, path: string): Resumable<boolean> {
    if (!isObject(condition)) {
      return yield* this.#leaf(condition, keys, path, Array.isArray(condition) ? null : "$eq", condition)
    }
    const parts = Object.entries(condition)
    if (parts.length === 0) return yield* this.#leaf(condition, keys, path, null, condition)
    let each = true
    for (const [key, operand] of parts) {
      if (this.#isOver) return each
      each = (yield* this.#part(key, operand, subject, keys, path)) && each
    }
    // Each part matches some element of an array, but no element matches all parts.
    if (each && parts.length > 1 && !this.#isOver && !(yield* this.#holds(condition, keys))) {
      return yield* this.#leaf(condition, keys, path, null, condition)
    }
    return each
  }

  *#part(
    key: string,
    operand: unknown,
    subject: Subject,
    keys: ReadonlyArray<string>,
    path: string
  ): Resumable<boolean> {
    if ((key === "$and" || key === "$or") && Array.isArray(operand)) {
      const whole = key === "$or" ? yield* this.#leaf({ [key]: operand }, keys, path, key, operand) : true
      let each = true
      for (const item of operand) {
        if (this.#isOver) break
        each = (yield* this.#value(item, subject, keys, path)) && each
      }
      if (key === "$or") return whole
      // Each item matches by itself, but not all together; or the value is missing and so none of them matches.
      if (each && operand.length !== 1 && !this.#isOver && !(yield* this.#holds({ [key]: operand }, keys))) {
        return yield* this.#leaf({ [key]: operand }, keys, path, key, operand)
      }
      return each
    }
    if (key === "$not" || key === "$ref" || this.#isOperator(key, operand, subject, keys)) {
      const operator = key.startsWith("$") ? key : `$${key}`
      return yield* this.#leaf({ [key]: operand }, keys, path, operator, operand)
    }
    return yield* this.#value(operand, "nested", [...keys, key], below(path, key))
  }

  /** Resolves a name without `$` as the engine does: it is a field if the value has one of that name. */
  #isOperator(key: string, operand: unknown, subject: Subject, keys: ReadonlyArray<string>): boolean {
    const operator = operatorOf(key)
    if (operator === undefined) return false
    if (key.startsWith("$") || subject === "text") return true
    if ((subject !== "document" && subject !== "nested") || !takes(operator, operand)) return false
    const value = this.#at(keys)
    return !isObject(value) || (subject === "nested" && !Object.hasOwn(value, key))
  }

  *#leaf(
    condition: unknown,
    keys: ReadonlyArray<string>,
    path: string,
    operator: string | null,
    expected: unknown
  ): Resumable<boolean> {
    const matched = yield* this.#holds(condition, keys)
    if (this.#isOver) return matched
    const actual = this.#shown([this.#target, ...keys].join("."), beginningOf(this.#at(keys)))
    this.#found.push({
      target: this.#target,
      path,
      operator,
      expected: cut(beginningOf(expected)),
      actual: cut(actual),
      matched
    })
    return matched
  }

  /** The engine's result for this branch alone. The conditions were compiled as a whole, so no part of them is refused. */
  *#holds(condition: unknown, keys: ReadonlyArray<string>): Resumable<boolean> {
    yield
    const branch = keys.reduceRight((inner, key) => ({ [key]: inner }), condition)
    const { test } = yield* compilingCondition(branch, subjects[this.#target], "", PatternBounds.stored())
    this.#scope.over(this.#document)
    return test(this.#document, this.#scope)
  }

  #at(keys: ReadonlyArray<string>): unknown {
    const names = this.#target === "headers" ? keys.map((key, i) => (i === 0 ? key.toLowerCase() : key)) : keys
    return valueAt(this.#document, names)
  }
}

/** The value at a place; for arrays, the values of the first elements. */
const valueAt = (document: unknown, keys: ReadonlyArray<string>): unknown => {
  let left = maxPlaces
  const step = (value: unknown, key: string): unknown => {
    if (left-- <= 0) return undefined
    if (Array.isArray(value)) {
      const position = positionOf(key)
      if (position >= 0) return value[position]
      const found = value.slice(0, maxElements).map((element) => step(element, key))
      const there = found.filter((one) => one !== undefined)
      return there.length === 0 ? undefined : there
    }
    if (!isObject(value)) return undefined
    if (Object.hasOwn(value, key)) return value[key]
    return key.includes(".") ? key.split(".").reduce(step, value) : undefined
  }
  return keys.reduce(step, document)
}

/** Copies the beginning of a value, up to the limit. */
const beginningOf = (value: unknown): Json => {
  let { characters, values } = looked
  const take = (value: unknown): Json => {
    values--
    if (typeof value === "string") {
      const text = value.slice(0, characters).toWellFormed()
      characters -= text.length
      return text
    }
    if (Array.isArray(value)) {
      const taken: Array<Json> = []
      for (const element of value) {
        if (values <= 0 || characters <= 0) break
        taken.push(take(element))
      }
      return taken
    }
    if (!isObject(value)) return (value as Json | undefined) ?? null
    const taken: Array<readonly [string, Json]> = []
    for (const name in value) {
      if (values <= 0 || characters <= 0) break
      if (!Object.hasOwn(value, name)) continue
      const key = name.slice(0, characters).toWellFormed()
      characters -= key.length
      taken.push([key, take(value[name])])
    }
    return Object.fromEntries(taken)
  }
  return take(value)
}

/** The value, or the beginning of its text if it is too long to show. */
const cut = (value: Json): Json => {
  if (typeof value !== "string" && (typeof value !== "object" || value === null)) return value
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return text.length <= shownCharacters ? value : `${text.slice(0, shownCharacters).toWellFormed()}…`
}
