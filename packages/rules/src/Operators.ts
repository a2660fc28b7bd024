import { areEqualNumbers, isExactNumber, isJsonNumber } from "@tidegate/json/ExactNumber"
import { Predicate } from "effect"
import { RE2JS, RE2JSSyntaxException } from "re2js"
import type { PatternBounds } from "./PatternBounds.ts"
import { contains, deeplyEqual, isComposite, looselyEqual, memberOf, order, pay, toNumber } from "./Equality.ts"
import { anyElement, anyNode, type Scope, type Test } from "./Evaluation.ts"

/** Reads the value of a `$ref` operand in this evaluation; undefined if the document has none there. */
export type Read = (scope: Scope) => unknown

/** An operator that tests one value. `$or`, `$and`, `$not` and a bare `$ref` are handled in Condition. */
export interface Operator {
  /** Description of valid operands, for the error message. */
  readonly takes: string
  readonly accepts: (operand: unknown) => boolean
  /** Returns the test for an operand, or an error message. */
  readonly compile: (operand: unknown, patterns: PatternBounds) => Test | string
  /** Whether compiling takes so long that the compiler yields after it. */
  readonly isLong?: true
  /** Returns the test for a `$ref` operand; null if the operand must be known when the rule is written. */
  readonly compileReference: ((read: Read) => Test) | null
  /** Whether the operator matches a missing key. */
  readonly acceptsAbsence?: (operand: unknown) => boolean
}

const isScalar = (value: unknown): boolean => !isComposite(value)
const isText = Predicate.isString
const isNumberOrText = Predicate.or(isJsonNumber, Predicate.isString)

const not =
  (test: Test): Test =>
  (value, scope) =>
    !test(value, scope)

/** The exact opposite of an operator, for an existing key. */
const opposite = (operator: Operator): Operator => {
  const { compileReference } = operator
  return {
    ...operator,
    compile: (operand, patterns) => {
      const test = operator.compile(operand, patterns)
      return typeof test === "string" ? test : not(test)
    },
    compileReference: compileReference === null ? null : (read) => not(compileReference(read))
  }
}

/** Equality with a fixed scalar: `looselyEqual`, with the operand prepared in advance. */
export const equalTo = (operand: unknown): Test => {
  if (typeof operand === "string") {
    const number = toNumber(operand)
    if (isExactNumber(number)) {
      return anyElement(
        (value, scope) =>
          value === operand || (isExactNumber(value) && pay(value, number, scope) && areEqualNumbers(value, number))
      )
    }
    return Number.isNaN(number)
      ? anyElement((value, scope) => pay(value, operand, scope) && value === operand)
      : anyElement((value) => value === operand || value === number)
  }
  if (isExactNumber(operand)) {
    return anyElement((value, scope) => pay(value, operand, scope) && looselyEqual(value, operand))
  }
  if (typeof operand === "number") {
    return anyElement(
      (value, scope) =>
        value === operand || (typeof value === "string" && pay(value, operand, scope) && toNumber(value) === operand)
    )
  }
  return anyElement((value) => value === operand)
}

/** Equality with the document's value at `read`; a missing value equals nothing. */
export const equalToReference = (read: Read): Test =>
  anyNode((value, scope) => {
    const operand = read(scope)
    if (operand === undefined) return false
    if (!isScalar(operand)) return deeplyEqual(value, operand, scope)
    return pay(value, operand, scope) && looselyEqual(value, operand)
  })

const equal: Operator = {
  takes: "any value",
  accepts: () => true,
  compile: (operand) =>
    isScalar(operand) ? equalTo(operand) : anyNode((value, scope) => deeplyEqual(value, operand, scope)),
  compileReference: equalToReference
}

const comparison = (holds: (sign: number) => boolean): Operator => ({
  takes: "a number or a text",
  accepts: isNumberOrText,
  compile: (operand) => anyElement((value, scope) => pay(value, operand, scope) && holds(order(value, operand))),
  compileReference: (read) =>
    anyElement((value, scope) => {
      const operand = read(scope)
      return pay(value, operand, scope) && holds(order(value, operand))
    })
})

const oneOf: Operator = {
  takes: "a list of plain values, or a number or text to look for in a text",
  accepts: (operand) => (Array.isArray(operand) ? operand.every(isScalar) : isNumberOrText(operand)),
  compile: (operand) => {
    if (Array.isArray(operand)) {
      const isMember = memberOf(operand)
      const hasNumbers = operand.some(isJsonNumber)
      return anyElement(
        (value, scope) => (!(hasNumbers || isExactNumber(value)) || pay(value, 0, scope)) && isMember(value)
      )
    }
    const part = String(operand)
    return anyElement((value, scope) => typeof value === "string" && contains(value, part, scope))
  },
  compileReference: (read) =>
    anyElement((value, scope) => {
      const operand = read(scope)
      if (Array.isArray(operand)) {
        return (
          scope.spend(operand.length) &&
          operand.some((member) => pay(value, member, scope) && looselyEqual(value, member))
        )
      }
      return isNumberOrText(operand) && typeof value === "string" && contains(value, String(operand), scope)
    })
}

const affix = (has: (text: string, part: string) => boolean): Operator => ({
  takes: "a text or a list of texts",
  accepts: (operand) => isText(operand) || (Array.isArray(operand) && operand.every(isText)),
  compile: (operand) => {
    const parts = (Array.isArray(operand) ? operand : [operand]).filter(isText)
    const cost = parts.reduce((sum, { length }) => sum + 4 + (length >> 4), 0)
    return anyElement(
      (value, scope) => typeof value === "string" && scope.spend(cost) && parts.some((part) => has(value, part))
    )
  },
  compileReference: (read) =>
    anyElement((value, scope) => {
      const operand = read(scope)
      return (
        typeof value === "string" && typeof operand === "string" && pay(value, operand, scope) && has(value, operand)
      )
    })
})

/** Whether a text contains a part, or an array contains an element. */
const containing: Operator = {
  takes: "a text or a number",
  accepts: isNumberOrText,
  compile: (operand) => {
    const part = String(operand)
    const member = equalTo(operand)
    return (value, scope) =>
      typeof value === "string" ? contains(value, part, scope) : Array.isArray(value) && member(value, scope)
  },
  compileReference: (read) => {
    const member = anyElement((value, scope) => {
      const operand = read(scope)
      return pay(value, operand, scope) && looselyEqual(value, operand)
    })
    return (value, scope) => {
      if (Array.isArray(value)) return member(value, scope)
      const operand = read(scope)
      return typeof value === "string" && isNumberOrText(operand) && contains(value, String(operand), scope)
    }
  }
}

/** Maximum length of a text that `$regex` searches, in characters; a longer one does not match. */
const maxSubjectLength = 65_536

/** Maximum instructions of a compiled pattern: their number times the length of the text limits the cost of a search. */
const maxProgramSize = 2_000
/** Steps for each search, however short the text is. */
const toBegin = 4
/** The sum of all counted repetitions in a pattern. */
const maxRepetitions = 1_000

/**
 * RE2 syntax: no look-around and no back-references, and linear time. The search uses RE2's NFA
 * instead of its DFA: a DFA keeps up to 8 MB of states per pattern, and becomes several times slower when that is full.
 */
const regex: Operator = {
  takes: "a pattern as text",
  isLong: true,
  accepts: isText,
  compile: (operand, patterns) => {
    const pattern = String(operand)
    const refusal = patterns.refusal(pattern)
    if (refusal !== null) return refusal
    if (repetitions(pattern) > maxRepetitions) return `the pattern's repetitions add up to more than ${maxRepetitions}`
    const compiled = compilePattern(pattern)
    if (typeof compiled === "string") return compiled
    const size = compiled.programSize()
    if (size > maxProgramSize) return "the pattern is too complex"
    return anyElement(
      (value, scope) =>
        typeof value === "string" &&
        value.length <= maxSubjectLength &&
        scope.spend(toBegin + value.length * size) &&
        compiled.matcher(value).find()
    )
  },
  compileReference: null
}

/** Sum of all counted repetitions, computed before compiling, because expanding many large ones takes long. */
const repetitions = (pattern: string): number =>
  pattern
    .matchAll(/\{(\d+)(?:,(\d*))?\}/g)
    .reduce((sum, [, least, most]) => sum + Math.max(Number(least), Number(most ?? 0)), 0)

const compilePattern = (pattern: string): RE2JS | string => {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return `the pattern is not valid: ${error.error}`
    throw error
  }
}

const exist: Operator = {
  takes: "true or false",
  accepts: Predicate.isBoolean,
  compile: (operand) => () => operand === true,
  compileReference: null,
  acceptsAbsence: (operand) => operand === false
}

const notEqual = opposite(equal)
const greater = comparison((sign) => sign > 0)
const greaterOrEqual = comparison((sign) => sign >= 0)
const less = comparison((sign) => sign < 0)
const lessOrEqual = comparison((sign) => sign <= 0)
const noneOf = opposite(oneOf)
const startsWith = affix((text, part) => text.startsWith(part))
const endsWith = affix((text, part) => text.endsWith(part))

/** Every spelling without the `$`, which is optional (see Condition for the meaning of a name without it). */
const spellings: ReadonlyMap<string, Operator> = new Map([
  ["eq", equal],
  ["neq", notEqual],
  ["ne", notEqual],
  ["gt", greater],
  ["gte", greaterOrEqual],
  ["lt", less],
  ["lte", lessOrEqual],
  ["in", oneOf],
  ["nin", noneOf],
  ["startsWith", startsWith],
  ["starts_with", startsWith],
  ["endsWith", endsWith],
  ["ends_with", endsWith],
  ["contains", containing],
  ["regex", regex],
  ["exist", exist],
  ["exists", exist]
])

/** The valid names, for error messages. */
export const operatorNames =
  "$eq, $neq, $gt, $gte, $lt, $lte, $in, $nin, $contains, $startsWith, $endsWith, $regex, $exist, $or, $and, $not, $ref"

/** The operator with this name, with or without `$`. */
export const operatorOf = (key: string): Operator | undefined => spellings.get(key.startsWith("$") ? key.slice(1) : key)
