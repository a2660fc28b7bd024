import type { Schema } from "effect"
import { maxJsonValues } from "@tidegate/model/BodyLimits"
import { largestExponent, longestNumber, maxExactNumbers } from "./ExactNumber.ts"
import { markingNumbers, mayRoundIn, unmarked } from "./NumberMarks.ts"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"

/**
 * The only way to read foreign JSON. The length of a text does not show what it costs to parse and walk: ten megabytes of brackets
 * take seconds. So its characters are counted first, which allocates nothing and stops at the limit.
 */

/** Limits of a JSON text; docs/rules.md describes how the numbers were measured. */
export interface JsonLimits {
  /** The whole value, all elements and all members. */
  readonly values: number
  /** Nesting levels of lists and objects. */
  readonly levels: number
  /**
   * Members of objects whose names and order occur in no other object: such a member costs 1 µs, and a member of an
   * object like others a twentieth of that.
   */
  readonly unlikeMembers: number
  /** Escapes in its texts: a text with escapes takes several times as long to write. */
  readonly escapes: number
}

/** Limits of a sender's or a target's body. */
export const bodyLimits: JsonLimits = {
  values: maxJsonValues,
  levels: 512,
  unlikeMembers: 20_000,
  escapes: 1_000_000
}

/** The limit that a text exceeds. The limit of a number's digits is the same for all texts. */
export type JsonExcess = keyof JsonLimits | "digits"

export interface JsonMeasure {
  /** Null if it is within the limits. */
  readonly excess: JsonExcess | null
  /** Values that were counted; all of them if no limit was exceeded. */
  readonly values: number
  /** Whether it may contain a number that a JavaScript number cannot hold: most texts do not, and are parsed without a search. */
  readonly mayRound: boolean
}

export type ParsedJson =
  | { readonly kind: "json"; readonly value: unknown; readonly values: number }
  | { readonly kind: JsonExcess | "invalid" }

/** The error message for a body that exceeds a limit. */
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
 * Parses JSON from bytes or text; beyond the limits it is not parsed. A number that would be rounded becomes an `ExactNumber`. Never
 * throws.
 */
export const parseJson = (json: Uint8Array | string, limits: JsonLimits = bodyLimits): ParsedJson => {
  const bytes = typeof json === "string" ? Buffer.from(json) : json
  const { excess, mayRound, values } = measureJson(bytes, limits)
  if (excess !== null) return { kind: excess }
  const text = typeof json === "string" ? json : utf8(json)
  return mayRound ? runToEnd(parsingDigits(text, values)) : parsed(text, values)
}

/** The same for bytes, resumable: counting, decoding and parsing take about ten milliseconds each for ten megabytes. */
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
 * Parses JSON that we wrote from input that was within the limits. Same as `JSON.parse`, but keeps every digit. Throws if it is not
 * JSON. Without such numbers it costs one additional search of the text.
 */
export const readJson = (text: string): unknown => (mayRoundIn(text) ? exactly(text) : JSON.parse(text))

/** The same for PostgreSQL's text of a `jsonb` in a range of bytes: its numbers have no exponents. */
export const readJsonbBytes = (bytes: Uint8Array, from: number, to: number): unknown => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString("utf8")
  return lookForDigits(bytes, from, to) === 0 ? JSON.parse(text) : exactly(text)
}

const exactly = (text: string): unknown => {
  const marked = runToEnd(markingNumbers(text))
  return unmarked(JSON.parse(marked.text), marked.numbers)
}

/** Decodes bytes as UTF-8; invalid sequences are replaced. */
export const utf8 = ({ buffer, byteLength, byteOffset }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("utf8")

const quote = 34
const comma = 44
const openList = 91
const backslash = 92
const closeList = 93
const openObject = 123
const closeObject = 125

/** The shortest possible member, with its comma: `"":1,`. */
const shortestMember = 5

/** A set of hashes of object shapes, one bit for each hash: large enough that few of the allowed shapes collide. */
const shapeBits = 18
const shapesSeen = new Uint32Array(2 ** (shapeBits - 5))
/** Secret to this process, so that nobody can choose names that collide. */
const seed = (Math.floor(Math.random() * 2 ** 31) << 1) | 1

/** Adds a hash to the set. Returns whether it was not in it. */
const isNewShape = (hash: number): boolean => {
  const bit = Math.imul(hash ^ (hash >>> 15), seed) >>> (32 - shapeBits)
  const word = shapesSeen[bit >>> 5]!
  const mask = 1 << (bit & 31)
  if ((word & mask) !== 0) return false
  shapesSeen[bit >>> 5] = word | mask
  return true
}

/** State of the open objects and lists, by level. Shared scratch space, because a measurement is synchronous. */
let hashes = new Int32Array(512)
let members = new Int32Array(512)

/** The meaning of a byte outside of texts: 0 if it does not count (white space, digits and most letters); 2 if it may be an exponent. */
const meanings = new Uint8Array(256)
for (const byte of [quote, comma, openList, closeList, openObject, closeObject]) meanings[byte] = 1
for (const letter of "eE") meanings[letter.charCodeAt(0)] = 2

/** Bytes of a number's digits, and bytes of a number. */
const digits = new Uint8Array(256)
for (const letter of "0123456789.") digits[letter.charCodeAt(0)] = 1
const numeric = Uint8Array.from(digits)
for (const letter of "+-eE") numeric[letter.charCodeAt(0)] = 1

/** Numbers with fewer digits, including a point, are never rounded. A run of that many digits always covers one of the checked positions. */
const manyDigits = 16

/** Whether a run of that many digits is in a range. 2: it belongs to a number that exceeds the length limit. */
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

/** An exponent of this many digits may exceed a double. */
const farExponent = 3

/** The same result for an exponent that may be written after a position. */
const lookAtExponent = (bytes: Uint8Array, behind: number): 0 | 1 | 2 => {
  // A letter of a word.
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
 * Counts the values of JSON bytes without parsing them. Valid JSON is counted exactly, anything else up to
 * the limits. About 10 ms for ten megabytes.
 */
export const measureJson = (bytes: Uint8Array, limits: JsonLimits): JsonMeasure => {
  const { length } = bytes
  if (limits.levels >= hashes.length) {
    hashes = new Int32Array(limits.levels + 1)
    members = new Int32Array(limits.levels + 1)
  }
  // A shorter text cannot have that many members.
  const looksAtShapes = length >= limits.unlikeMembers * shortestMember
  if (looksAtShapes) shapesSeen.fill(0)
  let values = 1
  let depth = 0
  let escapes = 0
  let unlike = 0
  /** Whether the next text is a member's name. */
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
        // The end of a name is hashed like a byte that cannot occur; otherwise `"ab"` and `"a","b"` would be one shape.
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

/** Whether a list or object is empty: only white space precedes its closing bracket. */
const isClosed = (bytes: Uint8Array, from: number, closing: number): boolean => {
  let i = from
  let byte = bytes[i]
  while (byte === 32 || byte === 10 || byte === 13 || byte === 9) byte = bytes[++i]
  return byte === closing
}

/** Above this level, code that walks a value by recursion could overflow the stack. */
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
