import { Predicate } from "effect"
import type { Scope } from "./Evaluation.ts"

/**
 * Equality and order of the filter language. Numbers and numeric texts are interchangeable, because headers and query
 * values are always texts and people write numbers; nothing else is: `true` is neither `1` nor `"true"`, and an empty
 * text is not zero.
 */

const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/** The number a decimal text stands for; NaN, which equals nothing, when it is none. */
export const toNumber = (text: string): number => {
  if (text.length === 0 || text.length > longestNumber || text.charCodeAt(0) > 57) return Number.NaN
  return decimal.test(text) ? Number(text) : Number.NaN
}

/** Equality of two scalars; an array or an object equals nothing here. */
export const looselyEqual = (a: unknown, b: unknown): boolean => {
  if (a === b) return !Predicate.isObjectOrArray(a)
  if (typeof a === "number") return typeof b === "string" && a === toNumber(b)
  return typeof a === "string" && typeof b === "number" && toNumber(a) === b
}

/**
 * Equality of two JSON values of any shape: the order of keys does not count, and below the top scalars are compared
 * strictly (an `$eq` with an object is an exact comparison).
 */
export const deeplyEqual = (a: unknown, b: unknown, scope: Scope): boolean => {
  if (!Predicate.isObjectOrArray(a) || !Predicate.isObjectOrArray(b)) return pay(a, b, scope) && a === b
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
 * The sign of `a - b`: numbers and numeric texts by value, two texts by code unit; NaN, which satisfies no comparison,
 * for everything else.
 */
export const order = (a: unknown, b: unknown): number => {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0
  const left = typeof a === "string" ? toNumber(a) : a
  const right = typeof b === "string" ? toNumber(b) : b
  if (typeof left !== "number" || typeof right !== "number") return Number.NaN
  return left < right ? -1 : left > right ? 1 : left === right ? 0 : Number.NaN
}

/** Whether one of a fixed list of scalars equals the value: what `looselyEqual` says of each, in constant time. */
export const memberOf = (members: ReadonlyArray<unknown>): ((value: unknown) => boolean) => {
  const exact = new Set(members)
  const texts = members.filter(Predicate.isString)
  const numeric = new Set(texts.map(toNumber).filter((value) => !Number.isNaN(value)))
  const numbers = new Set(members.filter(Predicate.isNumber))
  return (value) => {
    if (exact.has(value)) return true
    if (typeof value === "number") return numeric.has(value)
    return typeof value === "string" && numbers.size > 0 && numbers.has(toNumber(value))
  }
}

/** The longest text that may stand for a number. */
const longestNumber = 64

/**
 * Pays for the comparison of two values of which one is a text: with another text it is compared character by character, with a number read as one,
 * which takes much longer.
 */
export const pay = (a: unknown, b: unknown, scope: Scope): boolean => {
  if (typeof a === "string") {
    if (typeof b === "string") return scope.spend(Math.min(a.length, b.length) >> 6)
    return typeof b !== "number" || payForNumber(a, scope)
  }
  return typeof b !== "string" || typeof a !== "number" || payForNumber(b, scope)
}

const payForNumber = ({ length }: string, scope: Scope): boolean =>
  length > longestNumber || scope.spend((length + 3) >> 2)

/**
 * Texts up to this length are found in linear time by `String.includes`; for a longer one it can compare the whole of
 * it at every place where it could begin.
 */
const linearSearch = 250

/** Whether `text` contains `part`; false when looking for it would cost more than the evaluation may. */
export const contains = (text: string, part: string, scope: Scope): boolean => {
  const places = text.length - part.length + 1
  if (places <= 0) return false
  // Up to 6 ns for each place: the engine stops wherever the first character of the part is.
  const cost = part.length <= linearSearch ? text.length >> 3 : (places * part.length) / 32
  return scope.spend(cost) && text.includes(part)
}
