import { Schema } from "effect"

/**
 * Limits of names and texts, in Unicode characters, as the documents and JSON Schema's `maxLength` count them. `length` counts
 * characters beyond the first 65,536 twice. Bytes and work are limited where they arise.
 */

/** The number of characters of a text. */
export const count = (text: string): number => {
  let characters = text.length
  for (let at = 1; at < text.length; at++) {
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) characters--
  }
  return characters
}

const isHigh = (unit: number): boolean => (unit & 0xfc00) === 0xd800
const isLow = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Whether a text has at most that many characters. A text that is far longer is not read to its end. */
export const isUpTo = (text: string, max: number): boolean =>
  text.length <= max || (text.length <= 2 * max && count(text) <= max)

/** Checks that a text has at most that many characters. */
export const upTo = (max: number) =>
  Schema.makeFilter((text: string) => isUpTo(text, max) || `must be at most ${max} characters`, {
    toJsonSchema: () => ({ maxLength: max })
  })

/** The same with a minimum. */
export const between = (min: number, max: number) =>
  Schema.makeFilter(
    (text: string) =>
      (text.length >= min && isUpTo(text, max) && count(text) >= min) || `must be ${min} to ${max} characters`,
    { toJsonSchema: () => ({ minLength: min, maxLength: max }) }
  )
