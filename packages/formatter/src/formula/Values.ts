import type { Decimal } from "decimal.js"
import { isExactNumber } from "@tidegate/json/ExactNumber"
import { Predicate } from "effect"
import { Fault, previewOf } from "../engine/Fault.ts"
import { decimal } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { numberIn } from "../number/Numerals.ts"

/** What a formula counts with; null is a blank. */
export type Value = Decimal | string | boolean | null

export const domain = (message: string): Fault => new Fault("FORMATTER_FORMULA_DOMAIN", message, { field: "formula" })
export const wrongType = (value: Value, takes: string): Fault =>
  new Fault("FORMATTER_FORMULA_TYPE", `${takes} is taken here`, {
    field: "formula",
    value_preview: previewOf(shown(value))
  })

export const isNumber = (value: Value): value is Decimal => typeof value === "object" && value !== null
const shown = (value: Value): unknown => (isNumber(value) ? value.toString() : value)

/** A number of the formula; of doubles that are none, there is no value. */
export const ofDouble = (value: number): Decimal => {
  if (!Number.isFinite(value)) throw domain("there is no such number")
  return new (decimal())(value)
}

/** A value that was given. Objects and lists are none. */
export const valueOf = (given: unknown, name: string): Value => {
  if (typeof given === "number") return ofDouble(given)
  if (isExactNumber(given)) return new (decimal())(String(given))
  if (typeof given === "string" || typeof given === "boolean" || given === null) return given
  throw new Fault("FORMATTER_FORMULA_TYPE", `${name} is no number, text or boolean`, {
    field: "variables",
    value_preview: previewOf(given)
  })
}

/** As a number: a text that is one counts, a blank is 0, true is 1. */
/** The number that a text is; with a percent sign behind it, the hundredth. Null when it is none. */
const numberOf = (text: string): Decimal | null => {
  const percents = /^(.*\S)\s*%\s*$/s.exec(text.slice(0, 201))?.[1]
  const digits = numberIn(percents ?? text, ".")
  if (digits === null) return null
  const number = new (decimal())(digits)
  return percents === undefined ? number : number.div(100)
}

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

/** Whether a text, as it may stand beside a number. */
const asNumber = (value: Value): Decimal | null => {
  if (isNumber(value)) return value
  if (value === null) return new (decimal())(0)
  return typeof value === "string" ? numberOf(value) : null
}

/** Less, equal or more. Texts ignore case; a number beside a text that is one compares as numbers, else numbers come before texts before booleans. */
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

/** A number as it is given out: with a fraction at most 15 digits, a whole one with all of them; as text where JSON's readers would round it. What is larger than a number is `beyond`. */
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
