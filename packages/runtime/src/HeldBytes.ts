import type { Resumable } from "./Resumable.ts"
import { patternCost } from "./PatternCost.ts"

/**
 * About how many bytes of heap a JSON value and what is compiled from it take: rather more than less, told once by whoever keeps it in
 * a cache. The figures are measured, on 64 bits.
 */

/** Of a value with its name: itself, and the test, template or object that is made of it. */
const perValue = 200
/** Of a placeholder `{{…}}` in a text. */
const perPlaceholder = 400
/** Of a pattern of RE2, and of each microsecond of what compiling it costs. */
const perPattern = 8_000
const perCost = 100
/** Patterns are no longer than that. */
const longestPattern = 1_024

/** Values between two parts. */
const inOnePart = 2_000

const placeholdersIn = (text: string): number => {
  let count = 0
  for (let at = text.indexOf("{{"); at >= 0; at = text.indexOf("{{", at + 2)) count++
  return count
}

/** A text of ASCII alone has a byte a character, any other two; with a quarter more, for its pieces. */
const bytesOfText = (text: string): number =>
  1.25 * text.length * (Buffer.byteLength(text) === text.length ? 1 : 2) + perPlaceholder * placeholdersIn(text)

/** What a text is compiled to besides, where its name says that it is a pattern. */
const bytesOfPattern = (name: string, text: string): number =>
  text.length <= longestPattern && name.endsWith("regex") ? perPattern + perCost * patternCost(text) : 0

/** The bytes that a JSON value holds, with what is compiled from it; in parts. */
export function* weighing(value: unknown): Resumable<number> {
  let bytes = 0
  let seen = 0
  /** What has still to be weighed, each behind the name it has. */
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

/** The bytes that a pattern of RE2 takes once it is compiled; `isCaseless`: told so beside the pattern. */
export const bytesOfProgram = (pattern: string, isCaseless = false): number =>
  perPattern + perCost * patternCost(pattern, isCaseless)
