import { Schema } from "effect"

/**
 * How long names and texts may be: in characters of Unicode, as the documents and JSON Schema's `maxLength` count them. `length` counts those beyond the
 * first 65,536 twice. What a text costs, in bytes or in work, is bounded where it costs that.
 */

/** How many characters a text has. */
export const count = (text: string): number => {
  let characters = text.length
  for (let at = 1; at < text.length; at++) {
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) characters--
  }
  return characters
}

const isHigh = (unit: number): boolean => (unit & 0xfc00) === 0xd800
const isLow = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Whether a text has at most so many characters. One that is far longer is not looked through. */
export const isUpTo = (text: string, most: number): boolean =>
  text.length <= most || (text.length <= 2 * most && count(text) <= most)

/** The check of a text that has at most so many characters. */
export const upTo = (most: number) =>
  Schema.makeFilter((text: string) => isUpTo(text, most) || `must be at most ${most} characters`, {
    toJsonSchema: () => ({ maxLength: most })
  })

/** The same of one that has at least so many, too. */
export const between = (least: number, most: number) =>
  Schema.makeFilter(
    (text: string) =>
      (text.length >= least && isUpTo(text, most) && count(text) >= least) || `must be ${least} to ${most} characters`,
    { toJsonSchema: () => ({ minLength: least, maxLength: most }) }
  )
