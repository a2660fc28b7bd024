import type { Resumable } from "./Resumable.ts"
import { patternCost } from "./PatternCost.ts"

/**
 * Estimates how many bytes of heap a JSON value and its compiled form take; rather too many than too few. A cache asks once for
 * each entry. The numbers were measured on a 64-bit system.
 */

/** Bytes of a value with its name, including the test, template or object that is compiled from it. */
const perValue = 200
/** Bytes of a placeholder `{{…}}` in a text. */
const perPlaceholder = 400
/** Bytes of an RE2 pattern, and bytes for each microsecond that compiling it costs. */
const perPattern = 8_000
const perCost = 100
/** Maximum length of a pattern. */
const longestPattern = 1_024

/** Values between two yields. */
const inOnePart = 2_000

const placeholdersIn = (text: string): number => {
  let count = 0
  for (let at = text.indexOf("{{"); at >= 0; at = text.indexOf("{{", at + 2)) count++
  return count
}

/** An ASCII text takes one byte for each character, any other two; a quarter is added for its pieces. */
const bytesOfText = (text: string): number =>
  1.25 * text.length * (Buffer.byteLength(text) === text.length ? 1 : 2) + perPlaceholder * placeholdersIn(text)

/** Bytes of the pattern that a text is compiled to, if its name says that it is a pattern. */
const bytesOfPattern = (name: string, text: string): number =>
  text.length <= longestPattern && name.endsWith("regex") ? perPattern + perCost * patternCost(text) : 0

/**
 * The bytes of a JSON value and its compiled form. Resumable. It has its own loop: it pauses, which `visitJson` does not, and an
 * element has its list's name.
 */
export function* weighing(value: unknown): Resumable<number> {
  let bytes = 0
  let seen = 0
  /** Names and values that are not weighed yet; each value follows its name. */
  const left: Array<unknown> = [value]
  const names: Array<string> = [""]
  while (left.length > 0) {
    const one = left.pop()
    const name = names.pop()!
    bytes += perValue
    if (typeof one === "string") bytes += bytesOfText(one) + bytesOfPattern(name, one)
    else if (Array.isArray(one)) {
      for (const element of one) {
        left.push(element)
        names.push(name)
      }
    } else if (typeof one === "object" && one !== null) {
      for (const [member, its] of Object.entries(one)) {
        bytes += 2 * member.length
        left.push(its)
        names.push(member)
      }
    }
    if (++seen % inOnePart === 0) yield
  }
  return Math.ceil(bytes)
}

/** The bytes of a compiled RE2 pattern; `isCaseless`: the case-insensitive option is set outside of the pattern. */
export const bytesOfProgram = (pattern: string, isCaseless = false): number =>
  perPattern + perCost * patternCost(pattern, isCaseless)
