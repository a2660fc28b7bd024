import { type JsonLimits, bodyLimits, measureJson, readJson, utf8 } from "./JsonText.ts"
import { type PathSegment, positionOf } from "./JsonPath.ts"

/**
 * A few values of a large JSON text. To parse ten megabytes holds the loop for as long as everybody may have it; to look where its values
 * are takes a fifth of that, and what is asked for is parsed alone.
 */

/** Lists and objects of more bytes are gone into; smaller ones are parsed whole. */
const wholeBytes = 64 * 1024

/** So many bytes are parsed of one text at the most, all that is asked for together. */
export const maxParsedBytes = 1024 * 1024

/** Asked for more than is parsed. */
export const tooLarge = Symbol("too large")

/** A list or object that is gone into. Five numbers an entry: where its name is, where its value is, and the place of that among those that are gone into. */
interface Place {
  readonly isObject: boolean
  readonly entries: Int32Array
  /** Names that are written with escapes, once somebody has asked for a member. */
  escaped?: ReadonlyMap<string, number>
}

const perEntry = 5
const nowhere = -1

const [quote, comma, colon, openList, backslash, closeList, openObject, closeObject] = [
  34, 44, 58, 91, 92, 93, 123, 125
] as const

/** What ends a number or a word: 2 for white space, 1 for what has a meaning. */
const ends = new Uint8Array(256)
for (const byte of [32, 10, 13, 9]) ends[byte] = 2
for (const byte of [quote, comma, colon, openList, closeList, openObject, closeObject]) ends[byte] = 1

/** Behind white space. */
const skipped = (bytes: Uint8Array, from: number): number => {
  const { length } = bytes
  let i = from
  while (i < length && ends[bytes[i]!] === 2) i++
  return i
}

/** How far a text is looked at byte by byte, before its end is searched for: most are short. */
const nearBytes = 64

/** Behind the quote that ends the text which begins behind `from`; -1: none does. */
const endOfText = (bytes: Buffer, from: number): number => {
  let i = from
  for (;;) {
    const near = Math.min(i + nearBytes, bytes.length)
    for (; i < near; i++) {
      if (bytes[i] === quote) return i + 1
      if (bytes[i] === backslash) i++
    }
    const found = bytes.indexOf(quote, i)
    if (found < 0) return -1
    let escapes = found
    while (escapes > i && bytes[escapes - 1] === backslash) escapes--
    if ((found - escapes) % 2 === 0) return found + 1
    i = found + 1
  }
}

/** Behind a number or a word; the same place when there is none. */
const endOfWord = (bytes: Uint8Array, from: number): number => {
  const { length } = bytes
  let i = from
  while (i < length && ends[bytes[i]!] === 0) i++
  return i
}

const parsed = (bytes: Buffer, start: number, end: number): unknown => {
  try {
    return readJson(utf8(bytes.subarray(start, end)))
  } catch {
    return undefined
  }
}

export class LargeJson {
  readonly #bytes: Buffer
  readonly #places: ReadonlyArray<Place>
  readonly #root: readonly [start: number, end: number, place: number]
  readonly #values = new Map<number, unknown>()
  #room = maxParsedBytes

  private constructor(bytes: Buffer, places: ReadonlyArray<Place>, root: readonly [number, number, number]) {
    this.#bytes = bytes
    this.#places = places
    this.#root = root
  }

  /** Null: it is not built like JSON, or goes beyond the limits. What a number or a text has in it is seen when it is asked for. */
  static of(json: Uint8Array, limits: JsonLimits = bodyLimits): LargeJson | null {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
    // What is parsed of it later costs no more than the whole of a smaller one may.
    if (measureJson(bytes, limits).excess !== null) return null
    const { levels, values } = limits
    const places: Array<Place> = []
    const open: Array<{ readonly isObject: boolean; readonly start: number; readonly first: number }> = []
    let entries = new Int32Array(perEntry * 256)
    /** Of entries in use. */
    let used = 0
    let count = 0
    let nameStart = 0
    let nameEnd = 0
    let i = 0
    /** Whether the name of a member comes before the value. */
    let atName = false
    for (;;) {
      if (atName) {
        nameStart = skipped(bytes, i)
        nameEnd = bytes[nameStart] === quote ? endOfText(bytes, nameStart + 1) : nowhere
        const behind = skipped(bytes, nameEnd)
        if (nameEnd < 0 || bytes[behind] !== colon) return null
        i = behind + 1
        atName = false
      }
      // A value, at its first byte.
      i = skipped(bytes, i)
      if (++count > values) return null
      const start = i
      let place = nowhere
      const byte = bytes[i]
      if (byte === openList || byte === openObject) {
        if (open.length === levels) return null
        const isObject = byte === openObject
        // Its own name has to be kept until it is closed.
        if (used + perEntry > entries.length) entries = grown(entries)
        entries[used] = nameStart
        entries[used + 1] = nameEnd
        used += perEntry
        open.push({ isObject, start, first: used })
        i = skipped(bytes, i + 1)
        if (bytes[i] !== (isObject ? closeObject : closeList)) {
          atName = isObject
          continue
        }
      } else {
        i = byte === quote ? endOfText(bytes, i + 1) : endOfWord(bytes, i)
        if (i <= start) return null
      }
      let valueStart = start
      // What it ends, and what that ends: up to the next value.
      for (;;) {
        const around = open.at(-1)
        if (around === undefined) {
          const end = i
          i = skipped(bytes, i)
          return i === bytes.length ? new LargeJson(bytes, places, [valueStart, end, place]) : null
        }
        // Where it begins itself, it is empty.
        if (around.start !== valueStart) {
          if (used + perEntry > entries.length) entries = grown(entries)
          entries[used] = nameStart
          entries[used + 1] = nameEnd
          entries[used + 2] = valueStart
          entries[used + 3] = i
          entries[used + 4] = place
          used += perEntry
          i = skipped(bytes, i)
          if (bytes[i] === comma) {
            i++
            atName = around.isObject
            break
          }
        }
        if (bytes[i] !== (around.isObject ? closeObject : closeList)) return null
        i++
        open.pop()
        place = nowhere
        if (i - around.start > wholeBytes) {
          place = places.push({ isObject: around.isObject, entries: entries.slice(around.first, used) }) - 1
        }
        used = around.first - perEntry
        nameStart = entries[used]!
        nameEnd = entries[used + 1]!
        valueStart = around.start
      }
    }
  }

  /**
   * The value at a path, as far as the text was gone into: the rest of the path is to be walked in it. Undefined: nothing is there.
   * One that is larger than what may still be parsed is `tooLarge`.
   */
  reach(path: ReadonlyArray<PathSegment>): readonly [value: unknown, rest: ReadonlyArray<PathSegment>] {
    let [start, end, place] = this.#root
    let depth = 0
    for (; depth < path.length && place !== nowhere; depth++) {
      const at = this.#entryOf(this.#places[place]!, path[depth]!)
      if (at === null) return [undefined, []]
      ;[start, end, place] = at
    }
    return [this.#valueAt(start, end), path.slice(depth)]
  }

  #valueAt(start: number, end: number): unknown {
    if (this.#values.has(start)) return this.#values.get(start)
    if (end - start > this.#room) return tooLarge
    this.#room -= end - start
    const value = parsed(this.#bytes, start, end)
    this.#values.set(start, value)
    return value
  }

  #entryOf(place: Place, segment: PathSegment): readonly [number, number, number] | null {
    const { entries, isObject } = place
    const at = isObject
      ? segment.kind === "key"
        ? this.#memberOf(place, segment.key)
        : undefined
      : segment.kind === "index"
        ? segment.index
        : segment.kind === "key"
          ? positionOf(segment.key)
          : undefined
    const found = at === undefined || at < 0 ? entries.length : at * perEntry
    return found < entries.length ? [entries[found + 2]!, entries[found + 3]!, entries[found + 4]!] : null
  }

  /** Of a name that is there twice, the last one counts. Names are compared as they are written: to parse each costs a text each. */
  #memberOf(place: Place, key: string): number | undefined {
    const escaped = (place.escaped ??= this.#escapedOf(place)).get(key) ?? nowhere
    const found = Math.max(escaped, neverPlain.test(key) ? nowhere : this.#plainOf(place, Buffer.from(`"${key}"`)))
    return found === nowhere ? undefined : found
  }

  /** The last member whose name is written like this, quotes included. */
  #plainOf({ entries }: Place, name: Buffer): number {
    for (let i = entries.length - perEntry; i >= 0; i -= perEntry) {
      const [start, end] = [entries[i]!, entries[i + 1]!]
      if (end - start === name.length && name.compare(this.#bytes, start, end) === 0) return i / perEntry
    }
    return nowhere
  }

  /** There are no more of them than escapes in a text. */
  #escapedOf({ entries }: Place): ReadonlyMap<string, number> {
    const names = new Map<string, number>()
    for (let i = 0; i < entries.length; i += perEntry) {
      const [start, end] = [entries[i]!, entries[i + 1]!]
      if (!this.#bytes.subarray(start, end).includes(backslash)) continue
      const name = parsed(this.#bytes, start, end)
      if (typeof name === "string") names.set(name, i / perEntry)
    }
    return names
  }
}

/** What a name has in it only with an escape. Any other control character is one that no text parses with. */
const neverPlain = /["\\]/

const grown = (entries: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
  const more = new Int32Array(2 * entries.length)
  more.set(entries)
  return more
}
