import type { Decimal } from "decimal.js"
import { isExactNumber } from "@tidegate/json/ExactNumber"
import { Predicate } from "effect"
import { Fault, previewOf } from "../engine/Fault.ts"
import { decimal } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { numberIn } from "../number/Numerals.ts"

/** A value in a formula; null is a blank. */
export type Value = Decimal | string | boolean | null

export const domain = (message: string): Fault => new Fault("FORMATTER_FORMULA_DOMAIN", message, { field: "formula" })
export const wrongType = (value: Value, takes: string): Fault =>
  new Fault("FORMATTER_FORMULA_TYPE", `${takes} is taken here`, {
    field: "formula",
    value_preview: previewOf(shown(value))
  })

export const isNumber = (value: Value): value is Decimal => typeof value === "object" && value !== null
const shown = (value: Value): unknown => (isNumber(value) ? value.toString() : value)

/** Converts a double; throws a `Fault` if it is not finite. */
export const ofDouble = (value: number): Decimal => {
  if (!Number.isFinite(value)) throw domain("there is no such number")
  return new (decimal())(value)
}

/** Converts a variable's value. Objects and lists are refused. */
export const valueOf = (given: unknown, name: string): Value => {
  if (typeof given === "number") return ofDouble(given)
  if (isExactNumber(given)) return new (decimal())(String(given))
  if (typeof given === "string" || typeof given === "boolean" || given === null) return given
  throw new Fault("FORMATTER_FORMULA_TYPE", `${name} is no number, text or boolean`, {
    field: "variables",
    value_preview: previewOf(given)
  })
}

/** The value of a numeric text; with a percent sign, a hundredth of it. Null if it is not numeric. */
const numberOf = (text: string): Decimal | null => {
  const percents = /^(.*\S)\s*%\s*$/s.exec(text.slice(0, 201))?.[1]
  const digits = numberIn(percents ?? text, ".")
  if (digits === null) return null
  const number = new (decimal())(digits)
  return percents === undefined ? number : number.div(100)
}

/** A value as a number: numeric texts count, a blank is 0, true is 1. Throws a `Fault` for other texts. */
export const numeric = (value: Value): Decimal => {
  if (isNumber(value)) return value
  if (typeof value === "string") {
    if (value === "") return new (decimal())(0)
    const number = numberOf(value)
    if (number === null) throw wrongType(value, "a number")
    return number
  }
  return new (decimal())(value === true ? 1 : 0)
}

export const textual = (value: Value): string =>
  isNumber(value)
    ? value.toSignificantDigits(15).toString()
    : typeof value === "boolean"
      ? value
        ? "TRUE"
        : "FALSE"
      : (value ?? "")

export const truth = (value: Value): boolean => {
  if (typeof value === "boolean") return value
  if (typeof value === "string" && /^(?:true|false)$/i.test(value)) return value.length === 4
  if (typeof value === "string" && value !== "" && numberOf(value) === null) throw wrongType(value, "TRUE or FALSE")
  return !numeric(value).isZero()
}

/** The number for a comparison with a number; null if it has none. */
const asNumber = (value: Value): Decimal | null => {
  if (isNumber(value)) return value
  if (value === null) return new (decimal())(0)
  return typeof value === "string" ? numberOf(value) : null
}

/**
 * Negative, zero or positive. Texts ignore case. A number and a numeric text are compared as numbers; otherwise numbers precede texts, and
 * texts precede booleans.
 */
export const compare = (left: Value, right: Value): number => {
  if (isNumber(left) || isNumber(right)) {
    const [a, b] = [asNumber(left), asNumber(right)]
    if (a !== null && b !== null) return a.comparedTo(b)
  }
  if (left === null || right === null) {
    const [a, b] = [left ?? blankOf(right), right ?? blankOf(left)]
    if (a !== null && b !== null) return compare(a, b)
    return 0
  }
  const ranks = [left, right].map((value) => (isNumber(value) ? 0 : typeof value === "string" ? 1 : 2))
  if (ranks[0] !== ranks[1]) return ranks[0]! - ranks[1]!
  const [a, b] = [textual(left).toLowerCase(), textual(right).toLowerCase()]
  return a < b ? -1 : a > b ? 1 : 0
}

const blankOf = (other: Value): Value => (typeof other === "string" ? "" : typeof other === "boolean" ? false : other)

const tooLarge = (): Fault => domain("the number is too large")

/**
 * Converts a result to output: at most 15 digits if it has a fraction, all digits if it is whole, and as text if JSON readers would round it. If
 * it is too large, `beyond` creates the fault.
 */
export const emitted = (value: Decimal, call: Call, beyond: () => Fault = tooLarge): number | string => {
  const rounded = value.toSignificantDigits(15)
  const number = rounded.toNumber()
  if (!Number.isFinite(number)) throw beyond()
  const whole = value.isInteger() ? value : rounded
  if (whole.isInteger() && whole.abs().greaterThan(Number.MAX_SAFE_INTEGER)) {
    call.warn("NUMBER_AS_TEXT", "the number is too large for JSON's readers, and given as text")
    return whole.toFixed(0)
  }
  return value.isInteger() ? value.toNumber() : number
}

export const isFault = (cause: unknown, codes: ReadonlyArray<string>): cause is Fault =>
  Predicate.isObject(cause) && cause instanceof Fault && codes.includes(cause.code)
