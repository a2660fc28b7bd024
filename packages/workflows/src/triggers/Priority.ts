import { compareNumbers, isJsonNumber, isWholeNumber } from "@tidegate/json/ExactNumber"
import { mostPriority } from "@tidegate/model/WorkflowTriggers"

/** The priority of a run among those that wait for their turn. Pure: it follows the value that the request has. */

export const usualPriority = 0

/** Characters of a text that may be a number. */
const longestText = 32

/** The number that a value is: a number, or the text of a whole number, because headers and queries have only texts. */
const numberOf = (value: unknown) => {
  if (typeof value !== "string") return isJsonNumber(value) ? value : null
  return value.length <= longestText && /^-?\d+$/u.test(value) ? Number(value) : null
}

/** A number beyond the range counts as its end. What is not a whole number counts as `otherwise`. */
export const priorityOf = (value: unknown, otherwise: number): number => {
  const number = numberOf(value)
  if (number === null || !isWholeNumber(number)) return otherwise
  if (compareNumbers(number, mostPriority) >= 0) return mostPriority
  if (compareNumbers(number, -mostPriority) <= 0) return -mostPriority
  return Number(String(number))
}
