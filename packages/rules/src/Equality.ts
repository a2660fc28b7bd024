import {
  areEqualNumbers,
  canonicalNumber,
  compareNumbers,
  type ExactNumber,
  isExactNumber,
  isJsonNumber,
  readNumber
} from "@tidegate/json/ExactNumber"
import { Predicate } from "effect"
import type { Scope } from "./Evaluation.ts"

/**
 * Equality and order of the filter language. Numbers and numeric texts are equal if their values are, because headers and query
 * values are always texts and people write numbers. Nothing else is converted: `true` is neither `1` nor `"true"`, and an empty
 * text is not zero. Numbers are compared as decimals with all their digits: `1.0` equals `1`, and
 * `9007199254740993` differs from `9007199254740992`.
 */

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** The value of a decimal text; NaN, which equals nothing, if it is none. */
export const toNumber = (text: string): number | ExactNumber => {
  if (text.length === 0 || text.length > longestNumber || text.charCodeAt(0) > 57) return Number.NaN
  return decimal.test(text) ? readNumber(text) : Number.NaN
}

/** Whether a value is a list or an object. */
export const isComposite = (value: unknown): boolean => Predicate.isObjectOrArray(value) && !isExactNumber(value)

/** Equality of two scalars; an array or an object equals nothing here. */
export const looselyEqual = (a: unknown, b: unknown): boolean => {
  if (a === b) return !isComposite(a)
  if (typeof a === "string") return isJsonNumber(b) && areEqualNumbers(toNumber(a), b)
  return isJsonNumber(a) && areEqualNumbers(a, typeof b === "string" ? toNumber(b) : isExactNumber(b) ? b : Number.NaN)
}

/**
 * Equality of two JSON values of any shape: the order of keys does not matter, and below the top level scalars are compared
 * strictly (an `$eq` with an object is an exact comparison).
 */
export const deeplyEqual = (a: unknown, b: unknown, scope: Scope): boolean => {
  if (!Predicate.isObjectOrArray(a) || !Predicate.isObjectOrArray(b)) return pay(a, b, scope) && a === b
  if (isExactNumber(a) || isExactNumber(b)) {
    return pay(a, b, scope) && isExactNumber(a) && isExactNumber(b) && areEqualNumbers(a, b)
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length || !scope.enter(a.length)) return false
    let equal = true
    for (let i = 0; i < a.length && equal; i++) equal = deeplyEqual(a[i], b[i], scope)
    scope.leave()
    return equal
  }
  const keys = Object.keys(a)
  const count = Object.keys(b).length
  if (!scope.spend(keys.length + count) || keys.length !== count || !scope.enter(0)) return false
  let equal = true
  for (let i = 0; i < keys.length && equal; i++) {
    const key = keys[i]!
    equal = Object.hasOwn(b, key) && deeplyEqual(a[key], b[key], scope)
  }
  scope.leave()
  return equal
}

/**
 * The sign of `a - b`: numbers and numeric texts by value, two texts by code unit. For everything else NaN, which satisfies no
 * comparison.
 */
export const order = (a: unknown, b: unknown): number => {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0
  const left = typeof a === "string" ? toNumber(a) : a
  const right = typeof b === "string" ? toNumber(b) : b
  if (typeof left === "number" && typeof right === "number") {
    return left < right ? -1 : left > right ? 1 : left === right ? 0 : Number.NaN
  }
  return isJsonNumber(left) && isJsonNumber(right) ? compareNumbers(left, right) : Number.NaN
}

/** Whether one of a fixed list of scalars equals the value: same result as `looselyEqual` with each, but in constant time. */
export const memberOf = (members: ReadonlyArray<unknown>): ((value: unknown) => boolean) => {
  const strict = new Set(members)
  const texts = new Numbers(members.filter(Predicate.isString).map(toNumber))
  const numbers = new Numbers(members.filter(isJsonNumber))
  return (value) => {
    if (strict.has(value)) return true
    if (typeof value === "string") return !numbers.isEmpty && numbers.has(toNumber(value))
    return isJsonNumber(value) && (texts.has(value) || (isExactNumber(value) && numbers.has(value)))
  }
}

/** A set of numbers. */
class Numbers {
  readonly #plain: ReadonlySet<number>
  readonly #exact: ReadonlySet<string>

  constructor(numbers: ReadonlyArray<number | ExactNumber>) {
    this.#plain = new Set(numbers.filter(Predicate.isNumber).filter((number) => !Number.isNaN(number)))
    this.#exact = new Set(numbers.filter(isExactNumber).map(canonicalNumber))
  }

  get isEmpty(): boolean {
    return this.#plain.size + this.#exact.size === 0
  }

  has(number: number | ExactNumber): boolean {
    if (typeof number === "number") return this.#plain.has(number)
    return this.#exact.size > 0 && this.#exact.has(canonicalNumber(number))
  }
}

/** Maximum length of a text that is read as a number. */
const longestNumber = 64

/**
 * Counts the cost of a comparison with a text: two texts are compared character by character; a text and a number are compared by parsing the
 * text, which takes much longer. A number with more digits than a double is parsed as well.
 */
export const pay = (a: unknown, b: unknown, scope: Scope): boolean => {
  if (typeof a === "string") {
    if (typeof b === "string") return scope.spend(Math.min(a.length, b.length) >> 6)
    if (typeof b === "number") return payForNumber(a, scope)
    return !isExactNumber(b) || (payForDigits(b, scope) && payForNumber(a, scope))
  }
  if (typeof a === "object" && isExactNumber(a) && !payForDigits(a, scope)) return false
  if (typeof b === "object" && isExactNumber(b) && !payForDigits(b, scope)) return false
  return typeof b !== "string" || !isJsonNumber(a) || payForNumber(b, scope)
}

const payForNumber = ({ length }: string, scope: Scope): boolean =>
  length > longestNumber || scope.spend((length + 3) >> 2)

const payForDigits = (number: ExactNumber, scope: Scope): boolean => scope.spend((String(number).length + 3) >> 2)

/**
 * `String.includes` finds a text up to this length in linear time; a longer one may be compared completely at every position where it
 * could begin.
 */
const linearSearch = 250

/** Whether `text` contains `part`; false if the search would exceed the cost limit. */
export const contains = (text: string, part: string, scope: Scope): boolean => {
  const places = text.length - part.length + 1
  if (places <= 0) return false
  // Up to 6 ns for each position: the engine stops at every occurrence of the first character.
  const cost = part.length <= linearSearch ? text.length >> 3 : (places * part.length) / 32
  return scope.spend(cost) && text.includes(part)
}
