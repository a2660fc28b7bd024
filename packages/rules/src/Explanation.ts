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
 * Why a filter lets a request pass, or does not. Each operator is asked alone, by the engine itself, of the place that it stands
 * at: what an explanation says of one is what the engine says.
 */

/** What one operator says. */
export interface Explained {
  readonly target: ConditionTarget
  /** Of the value in its target; empty: the target itself. */
  readonly path: string
  /** Null: a list, each item of which some element has to meet, or an object all of which one element has to meet. */
  readonly operator: string | null
  readonly expected: Json
  /** What is there; null when nothing is. Of what is in an array, the values of its first elements. */
  readonly actual: Json
  readonly matched: boolean
}

export interface Explanation {
  readonly matched: boolean
  /** Null: the filter does not ask about it. */
  readonly targets: Readonly<Record<ConditionTarget, boolean | null>>
  readonly explanation: ReadonlyArray<Explained>
}

/** Operators that are told about; the conditions may hold more. */
export const maxExplained = 50

/** Characters of a value that are shown. */
export const shownCharacters = 200

/** Of a value so much is looked at before it is cut: it may be as large as a request. */
const looked = { characters: 1_000, values: 100 }

/** Places looked at to find what is in arrays. */
const maxPlaces = 1_000
const maxElements = 20

/** A value as it may be shown, by the path that it stands at: without what is secret. */
export type Shown = (path: string, value: Json) => Json

type Fields = { readonly [key: string]: unknown }

const subjects = { headers: "headers", body: "document", query: "record", path: "text" } as const

const isObject = (value: unknown): value is Fields => isJsonObject(value)

/**
 * Judges a request by conditions and explains it. The evaluation is that of a connection, limits included; the explanation has as
 * many steps again, and ends where these do. A part of the work is one operator.
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

  /** Whether every operator in it holds, each by itself. */
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
    // Each holds for some element of an array, and all together for none.
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
      // Each holds by itself, and all together do not; so does none of them where there is nothing.
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

  /** Without its `$`, a name is what the engine takes it for: a field where the value has one of that name. */
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

  /** What the engine says of this one branch. Conditions were compiled as a whole: none of their parts is refused. */
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

/** What is at a place; of elements of arrays, those of the first. */
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

/** As much of a value as is looked at. */
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

/** The value, or the beginning of its text when it is longer than what is shown. */
const cut = (value: Json): Json => {
  if (typeof value !== "string" && (typeof value !== "object" || value === null)) return value
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return text.length <= shownCharacters ? value : `${text.slice(0, shownCharacters).toWellFormed()}…`
}
