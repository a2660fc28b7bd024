import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import { type ExactNumber, isExactNumber, readNumber } from "./ExactNumber.ts"

/**
 * Keeps `JSON.parse` from rounding: each number that would be rounded is replaced by a mark before parsing, and the mark by the number afterwards.
 * The parser can pass the source text of every number to a reviver function, but that takes ten times as long.
 */

/** A text with marks, and the numbers that they stand for. */
export interface Marked {
  readonly text: string
  readonly numbers: ReadonlyArray<number | ExactNumber>
}

/**
 * Marks are the whole numbers from here on. A number of the text that is in this range is replaced by a mark, too, so that every mark
 * found afterwards is ours. Each number in the range has an exponent, or enough digits to be checked.
 */
const firstMark = 2 ** 52
const behindMarks = 2 ** 53
const isMark = (number: number): boolean => number >= firstMark && number < behindMarks

const quote = 34
const backslash = 92
const isNumeric = (code: number): boolean =>
  (code >= 48 && code <= 57) || code === 46 || code === 101 || code === 69 || code === 43 || code === 45

const wellFormed = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Shorter numbers without an exponent are never rounded. */
const shortest = 16

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/**
 * Whether a text written by `JSON.stringify` may contain a number that would be rounded; the content of its strings may look like one. Only a few
 * characters are checked: a long run of digits covers one of these positions, and an exponent has a sign.
 */
export const mayRoundIn = (text: string): boolean => {
  for (let at = shortest - 1; at < text.length; at += shortest) {
    if (!isOfDigits(text.charCodeAt(at))) continue
    let start = at
    while (isOfDigits(text.charCodeAt(start - 1))) start--
    while (isOfDigits(text.charCodeAt(at + 1))) at++
    if (at - start + 1 >= shortest) return true
  }
  return hasFarExponent(text, "+") || hasFarExponent(text, "-")
}

const isOfDigits = (code: number): boolean => isDigit(code) || code === 46

/** Whether there is an exponent of three digits with this sign. */
const hasFarExponent = (text: string, sign: string): boolean => {
  for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) {
    if (text[at - 1] === "e" && isDigit(text.charCodeAt(at - 2)) && isDigit(text.charCodeAt(at + 3))) return true
  }
  return false
}

/** Replaces the numbers that would be rounded. Invalid JSON stays invalid. */
export function* markingNumbers(text: string): Resumable<Marked> {
  const numbers: Array<number | ExactNumber> = []
  const marked = yield* replacing(text, (number) => {
    if (!isExactNumber(number) && !isMark(number)) return null
    numbers.push(number)
    return String(firstMark + numbers.length - 1)
  })
  return { text: marked, numbers }
}

/** The JSON that `JSON.parse` and `JSON.stringify` would produce: with rounded numbers, and null for numbers that are too large. */
export const roundNumbers = (json: string): string =>
  runToEnd(
    replacing(json, (number) => {
      if (!isExactNumber(number)) return null
      const rounded = Number(String(number))
      return Number.isFinite(rounded) ? String(rounded) : "null"
    })
  )

/** Writes a value as JSON with all digits, also on platforms whose `JSON.stringify` cannot. */
export const writeJson = (value: unknown, indent = 0): string => {
  const numbers: Array<string> = []
  const marked = JSON.stringify(
    value,
    function (this: Readonly<Record<string, unknown>>, name, shown: unknown) {
      // For an exact number, `shown` is already the result of `toJSON`.
      const number = this[name]
      if (!isExactNumber(number) && !(typeof number === "number" && isMark(number))) return shown
      return firstMark + numbers.push(String(number)) - 1
    },
    indent
  )
  if (marked === undefined || numbers.length === 0) return marked
  return runToEnd(
    replacing(marked, (number) => (!isExactNumber(number) && isMark(number) ? numbers[number - firstMark]! : null))
  )
}

/** Numbers between two yields: a millisecond or two. */
const numbersAtOnce = 2_000

/** Replaces numbers in the text; if `replacement` returns null the number stays. */
function* replacing(text: string, replacement: (number: number | ExactNumber) => string | null): Resumable<string> {
  const pieces: Array<string> = []
  let taken = 0
  let looked = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) {
      i = endOfText(text, i + 1)
      continue
    }
    if (code !== 45 && !isDigit(code)) continue
    const start = i
    let hasExponent = false
    for (let next = code; isNumeric(next); next = text.charCodeAt(i)) {
      if (next === 101 || next === 69) hasExponent = true
      i++
    }
    if (i - start >= shortest || hasExponent) {
      if (++looked % numbersAtOnce === 0) yield
      const written = text.slice(start, i)
      const instead = wellFormed.test(written) ? replacement(readNumber(written)) : null
      if (instead !== null) {
        pieces.push(text.slice(taken, start), instead)
        taken = i
      }
    }
    i--
  }
  return pieces.length === 0 ? text : pieces.join("") + text.slice(taken)
}

/** The index of the closing quote of the text that begins there; the end of the input if it has none. */
const endOfText = (text: string, from: number): number => {
  for (let i = from; ;) {
    const end = text.indexOf('"', i)
    if (end < 0) return text.length
    let escapes = end
    while (escapes > i && text.charCodeAt(escapes - 1) === backslash) escapes--
    if ((end - escapes) % 2 === 0) return end
    i = end + 1
  }
}

/**
 * Replaces the marks in a parsed value by their numbers; the value is changed in place. It has its own loop, because every parsed
 * body with a large number passes it, and only lists and objects are put aside.
 */
export const unmarked = (value: unknown, numbers: Marked["numbers"]): unknown => {
  if (typeof value === "number") return isMark(value) ? numbers[value - firstMark] : value
  if (typeof value !== "object" || value === null || numbers.length === 0) return value
  // Without recursion, because a parsed value may be nested deeper than the stack allows.
  const open: Array<object> = [value]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (Array.isArray(at)) {
      for (let i = 0; i < at.length; i++) {
        const one: unknown = at[i]
        if (typeof one === "object" && one !== null) open.push(one)
        else if (typeof one === "number" && isMark(one)) at[i] = unmarked(one, numbers)
      }
      continue
    }
    const members = at as Record<string, unknown>
    for (const name of Object.keys(members)) {
      const one = members[name]
      if (typeof one === "object" && one !== null) open.push(one)
      else if (typeof one === "number" && isMark(one)) {
        // A member may be named `__proto__`.
        if (name === "__proto__") Object.defineProperty(members, name, { value: unmarked(one, numbers) })
        else members[name] = unmarked(one, numbers)
      }
    }
  }
  return value
}
