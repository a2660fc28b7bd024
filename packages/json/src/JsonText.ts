import type { Schema } from "effect"
import { maxJsonValues } from "@tidegate/model/BodyLimits"
import { largestExponent, longestNumber, maxExactNumbers } from "./ExactNumber.ts"
import { markingNumbers, mayRoundIn, unmarked } from "./NumberMarks.ts"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"

/**
 * The one way to read JSON that somebody else wrote. What a text costs to parse and to walk does not show in its length:
 * ten megabytes of brackets take seconds. So its characters are looked at first, which makes nothing and stops at the limit.
 */

/** What a JSON text may amount to; docs/rules.md has what the figures were measured by. */
export interface JsonLimits {
  /** The whole, the elements and the members. */
  readonly values: number
  /** Lists and objects in each other. */
  readonly levels: number
  /**
   * Members of objects that have the same names in the same order as no other: such a member costs 1 µs, and one of an
   * object like others a twentieth of it.
   */
  readonly unlikeMembers: number
  /** Escapes in its texts: they make one that takes several times as long to be written again. */
  readonly escapes: number
}

/** Of a sender's or a target's body. */
export const bodyLimits: JsonLimits = {
  values: maxJsonValues,
  levels: 512,
  unlikeMembers: 20_000,
  escapes: 1_000_000
}

/** Which of the limits a text goes beyond. Of a number's digits there is one limit for all texts. */
export type JsonExcess = keyof JsonLimits | "digits"

export interface JsonMeasure {
  /** Null: it is within the limits. */
  readonly excess: JsonExcess | null
  /** Values seen, all of them when there is no excess. */
  readonly values: number
  /** Whether there is a number in it that a plain one may not hold: most texts have none, and are parsed without looking. */
  readonly mayRound: boolean
}

export type ParsedJson =
  | { readonly kind: "json"; readonly value: unknown; readonly values: number }
  | { readonly kind: JsonExcess | "invalid" }

/** What is said of a body that goes beyond one of its limits. */
export const excessIn = (excess: JsonExcess, limits: JsonLimits = bodyLimits): string =>
  ({
    values: `has more than ${limits.values} JSON values`,
    levels: `is nested deeper than ${limits.levels} levels`,
    unlikeMembers: `has more than ${limits.unlikeMembers} members in objects that are unlike each other`,
    escapes: `has more than ${limits.escapes} escapes in its texts`,
    digits: `has a number of more than ${longestNumber} characters, an exponent beyond ${largestExponent}, or more than ${maxExactNumbers} numbers that are no doubles`
  })[excess]

const invalid: ParsedJson = { kind: "invalid" }

/**
 * The value of JSON, as bytes or as text; what is beyond the limits is not parsed. A number that would be rounded is an `ExactNumber`. Never
 * throws.
 */
export const parseJson = (json: Uint8Array | string, limits: JsonLimits = bodyLimits): ParsedJson => {
  const bytes = typeof json === "string" ? Buffer.from(json) : json
  const { excess, mayRound, values } = measureJson(bytes, limits)
  if (excess !== null) return { kind: excess }
  const text = typeof json === "string" ? json : utf8(json)
  return mayRound ? runToEnd(parsingDigits(text, values)) : parsed(text, values)
}

/** The same of bytes, in parts: looking at them, reading their text and parsing it take some ten milliseconds each where they are ten megabytes. */
export function* parsingJson(bytes: Uint8Array, limits: JsonLimits = bodyLimits): Resumable<ParsedJson> {
  const { excess, mayRound, values } = measureJson(bytes, limits)
  if (excess !== null) return { kind: excess }
  yield
  const text = utf8(bytes)
  yield
  return mayRound ? yield* parsingDigits(text, values) : parsed(text, values)
}

const parsed = (text: string, values: number): ParsedJson => {
  try {
    return { kind: "json", value: JSON.parse(text), values }
  } catch {
    return invalid
  }
}

function* parsingDigits(text: string, values: number): Resumable<ParsedJson> {
  const marked = yield* markingNumbers(text)
  if (marked.numbers.length > maxExactNumbers) return { kind: "digits" }
  yield
  const read = parsed(marked.text, values)
  if (read.kind !== "json" || marked.numbers.length === 0) return read
  yield
  return { ...read, value: unmarked(read.value, marked.numbers) }
}

/**
 * JSON that we wrote ourselves, of what was parsed with limits when it came: as `JSON.parse` reads it, with every digit. Throws for what is no
 * JSON. What has no such number costs a look at the text.
 */
export const readJson = (text: string): unknown => (mayRoundIn(text) ? exactly(text) : JSON.parse(text))

/** The same of what PostgreSQL writes of a `jsonb`, between two places: its numbers have no exponents. */
export const readJsonbBytes = (bytes: Uint8Array, from: number, to: number): unknown => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("utf8")
  return lookForDigits(bytes, from, to) === 0 ? JSON.parse(text) : exactly(text)
}

const exactly = (text: string): unknown => {
  const marked = runToEnd(markingNumbers(text))
  return unmarked(JSON.parse(marked.text), marked.numbers)
}

/** The text of bytes; what is not UTF-8 in them is replaced. */
export const utf8 = ({ buffer, byteLength, byteOffset }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("utf8")

const quote = 34
const comma = 44
const openList = 91
const backslash = 92
const closeList = 93
const openObject = 123
const closeObject = 125

/** The shortest member there is, with its comma: `"":1,`. */
const shortestMember = 5

/** Shapes of objects by their hash: one bit each, so many that few of the allowed ones share one. */
const shapeBits = 18
const shapesSeen = new Uint32Array(2 ** (shapeBits - 5))
/** Not known outside this process: nobody can make up names that hash to the same. */
const seed = (Math.floor(Math.random() * 2 ** 31) << 1) | 1

/** Whether a hash is met for the first time since the bits were cleared. */
const isNewShape = (hash: number): boolean => {
  const bit = Math.imul(hash ^ (hash >>> 15), seed) >>> (32 - shapeBits)
  const word = shapesSeen[bit >>> 5]!
  const mask = 1 << (bit & 31)
  if ((word & mask) !== 0) return false
  shapesSeen[bit >>> 5] = word | mask
  return true
}

/** Of the objects and lists that are open, by level. Scratch space: a measurement does not yield. */
let hashes = new Int32Array(512)
let members = new Int32Array(512)

/** What a byte between texts means: 0 for what does not count, white space, digits and most letters among it; 2: perhaps an exponent. */
const meanings = new Uint8Array(256)
for (const byte of [quote, comma, openList, closeList, openObject, closeObject]) meanings[byte] = 1
for (const letter of "eE") meanings[letter.charCodeAt(0)] = 2

/** What the digits of a number consist of, and what a number does. */
const digits = new Uint8Array(256)
for (const letter of "0123456789.") digits[letter.charCodeAt(0)] = 1
const numeric = Uint8Array.from(digits)
for (const letter of "+-eE") numeric[letter.charCodeAt(0)] = 1

/** Fewer digits, with a point among them, are never rounded. Of as many in a row, one stands where every so many bytes are looked at. */
const manyDigits = 16

/** Whether there are so many digits in a row between two places. 2: they are part of a number that is longer than one may be. */
const lookForDigits = (bytes: Uint8Array, from: number, to: number): 0 | 1 | 2 => {
  let found: 0 | 1 = 0
  for (let at = from + manyDigits - 1; at < to; at += manyDigits) {
    if (digits[bytes[at]!] === 0) continue
    let start = at
    while (start > from && digits[bytes[start - 1]!] === 1) start--
    let end = at + 1
    while (end < bytes.length && numeric[bytes[end]!] === 1) end++
    if (end - start > longestNumber) return 2
    if (end - start >= manyDigits) found = 1
    at = Math.max(at, end - manyDigits)
  }
  return found
}

/** So many digits of an exponent may lead beyond a double. */
const farExponent = 3

/** What the exponent is that may be written behind a place, in the same words. */
const lookAtExponent = (bytes: Uint8Array, behind: number): 0 | 1 | 2 => {
  // The letter of a word.
  if (digits[bytes[behind - 1]!] !== 1) return 0
  let at = behind + 1
  if (bytes[at] === 43 || bytes[at] === 45) at++
  while (bytes[at] === 48) at++
  let value = 0
  let count = 0
  for (; count <= longestNumber && bytes[at]! >= 48 && bytes[at]! <= 57; at++, count++) {
    value = value * 10 + bytes[at]! - 48
  }
  return value > largestExponent ? 2 : count >= farExponent ? 1 : 0
}

/**
 * Counts what JSON bytes would be parsed to, without parsing them: what is JSON is counted exactly, anything else up to
 * the limits. Some 10 ms for ten megabytes.
 */
export const measureJson = (bytes: Uint8Array, limits: JsonLimits): JsonMeasure => {
  const { length } = bytes
  if (limits.levels >= hashes.length) {
    hashes = new Int32Array(limits.levels + 1)
    members = new Int32Array(limits.levels + 1)
  }
  // Shorter text has not as many members.
  const looksAtShapes = length >= limits.unlikeMembers * shortestMember
  if (looksAtShapes) shapesSeen.fill(0)
  let values = 1
  let depth = 0
  let escapes = 0
  let unlike = 0
  /** Whether a text that comes next is a member's name. */
  let atName = false
  let mayRound = false
  for (let i = 0; ; i++) {
    const from = i
    while (i < length && meanings[bytes[i]!] === 0) i++
    if (i - from >= manyDigits) {
      const found = lookForDigits(bytes, from, i)
      if (found === 2) return { excess: "digits", values, mayRound }
      if (found === 1) mayRound = true
    }
    if (i >= length) return { excess: null, values, mayRound }
    let byte = bytes[i]!
    if (byte === quote) {
      i++
      if (atName && looksAtShapes) {
        let hash = hashes[depth]!
        for (; i < length; i++) {
          byte = bytes[i]!
          if (byte === quote) break
          if (byte === backslash) {
            escapes++
            i++
          }
          hash = Math.imul(hash ^ byte, seed)
        }
        // The end of a name counts like a byte that there is not, or `"ab"` and `"a","b"` were one shape.
        hashes[depth] = Math.imul(hash ^ 0x100, seed) | 1
        if (++members[depth]! > limits.unlikeMembers) return { excess: "unlikeMembers", values, mayRound }
      } else {
        for (; i < length; i++) {
          byte = bytes[i]!
          if (byte === quote) break
          if (byte === backslash) {
            escapes++
            i++
          }
        }
      }
      if (escapes > limits.escapes) return { excess: "escapes", values, mayRound }
      atName = false
    } else if (byte === comma) {
      if (++values > limits.values) return { excess: "values", values, mayRound }
      atName = depth > 0 && hashes[depth] !== 0
    } else if (byte === openList || byte === openObject) {
      if (++depth > limits.levels) return { excess: "levels", values, mayRound }
      atName = byte === openObject
      hashes[depth] = atName ? 1 : 0
      members[depth] = 0
      if (!isClosed(bytes, i + 1, byte + 2) && ++values > limits.values) return { excess: "values", values, mayRound }
    } else if (meanings[byte] === 2) {
      const found = lookAtExponent(bytes, i)
      if (found === 2) return { excess: "digits", values, mayRound }
      if (found === 1) mayRound = true
    } else if (depth > 0) {
      if (looksAtShapes && hashes[depth] !== 0 && isNewShape(hashes[depth]!)) {
        unlike += members[depth]!
        if (unlike > limits.unlikeMembers) return { excess: "unlikeMembers", values, mayRound }
      }
      depth--
      atName = false
    }
  }
}

/** Whether nothing but white space is before what closes a list or an object. */
const isClosed = (bytes: Uint8Array, from: number, closing: number): boolean => {
  let i = from
  let byte = bytes[i]
  while (byte === 32 || byte === 10 || byte === 13 || byte === 9) byte = bytes[++i]
  return byte === closing
}

/** Deeper than this, what walks a value by recursion could run out of stack. */
const nestAtMost = 200

/** Whether a value has too many values, or too many levels, to be walked value by value. */
export const isUnwieldy = (root: Schema.Json): boolean => {
  const open: Array<readonly [value: Schema.Json, depth: number]> = [[root, 0]]
  let count = 1
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    const [value, depth] = at
    if (typeof value !== "object" || value === null) continue
    const inner = Object.values(value)
    count += inner.length
    if (count > maxJsonValues || depth === nestAtMost) return true
    for (const one of inner) if (typeof one === "object" && one !== null) open.push([one, depth + 1])
  }
  return false
}
