import { type JsonLimits, bodyLimits, measureJson, readJson, utf8 } from "./JsonText.ts"
import { type PathSegment, positionOf } from "./JsonPath.ts"

/**
 * Reads a few values of a large JSON text. Parsing ten megabytes blocks the event loop for as long as is allowed at all. Locating
 * the values takes a fifth of that, and only requested values are parsed.
 */

/** Lists and objects with more bytes are indexed; smaller ones are parsed as a whole. */
const wholeBytes = 64 * 1024

/** Bytes of one text that are parsed, for all requested values together. */
export const maxParsedBytes = 1024 * 1024

/** Returned if the requested values exceed `maxParsedBytes`. */
export const tooLarge = Symbol("too large")

/**
 * An indexed list or object. An entry has five numbers: start and end of its name, start and end of its value, and the index of the
 * value's own `Place` (-1: none).
 */
interface Place {
  readonly isObject: boolean
  readonly entries: Int32Array
  /** Members whose names contain escapes; computed when a member is first requested. */
  escaped?: ReadonlyMap<string, number>
}

const perEntry = 5
const nowhere = -1

const [quote, comma, colon, openList, backslash, closeList, openObject, closeObject] = [
  34, 44, 58, 91, 92, 93, 123, 125
] as const

/** Bytes that end a number or a word: 2 for white space, 1 for punctuation. */
const ends = new Uint8Array(256)
for (const byte of [32, 10, 13, 9]) ends[byte] = 2
for (const byte of [quote, comma, colon, openList, closeList, openObject, closeObject]) ends[byte] = 1

/** The index after white space. */
const skipped = (bytes: Uint8Array, from: number): number => {
  const { length } = bytes
  let i = from
  while (i < length && ends[bytes[i]!] === 2) i++
  return i
}

/** Bytes of a text that are checked one by one before a search for its end: most texts are short. */
const nearBytes = 64

/** The index after the closing quote of the text that begins before `from`; -1 if it has none. */
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

/** The index after a number or a word; `from` if there is none. */
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

  /**
   * Indexes a JSON text. Null if its structure is not JSON, or if it exceeds the limits. The content of numbers and texts is checked only
   * when they are requested.
   */
  static of(json: Uint8Array, limits: JsonLimits = bodyLimits): LargeJson | null {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength)
    // So any part that is parsed later costs no more than a smaller text within the limits.
    if (measureJson(bytes, limits).excess !== null) return null
    const { levels, values } = limits
    const places: Array<Place> = []
    const open: Array<{ readonly isObject: boolean; readonly start: number; readonly first: number }> = []
    let entries = new Int32Array(perEntry * 256)
    /** Numbers of `entries` in use. */
    let used = 0
    let count = 0
    let nameStart = 0
    let nameEnd = 0
    let i = 0
    /** Whether the name of a member precedes the value. */
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
      // The first byte of a value.
      i = skipped(bytes, i)
      if (++count > values) return null
      const start = i
      let place = nowhere
      const byte = bytes[i]
      if (byte === openList || byte === openObject) {
        if (open.length === levels) return null
        const isObject = byte === openObject
        // The container's own name is kept until it is closed.
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
      // Closes all containers that end here, up to the next value.
      for (;;) {
        const around = open.at(-1)
        if (around === undefined) {
          const end = i
          i = skipped(bytes, i)
          return i === bytes.length ? new LargeJson(bytes, places, [valueStart, end, place]) : null
        }
        // If the value is the container itself, the container is empty.
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
   * The value at a path, as deep as the text is indexed, with the rest of the path, which the caller walks in that value. Undefined if there is
   * none. `tooLarge` if it exceeds the bytes that may still be parsed.
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

  /** If a name occurs twice, the last one counts. Names are compared as written, because parsing would create a string for each of them. */
  #memberOf(place: Place, key: string): number | undefined {
    const escaped = (place.escaped ??= this.#escapedOf(place)).get(key) ?? nowhere
    const found = Math.max(escaped, neverPlain.test(key) ? nowhere : this.#plainOf(place, Buffer.from(`"${key}"`)))
    return found === nowhere ? undefined : found
  }

  /** The last member whose name is written exactly like this, including quotes. */
  #plainOf({ entries }: Place, name: Buffer): number {
    for (let i = entries.length - perEntry; i >= 0; i -= perEntry) {
      const [start, end] = [entries[i]!, entries[i + 1]!]
      if (end - start === name.length && name.compare(this.#bytes, start, end) === 0) return i / perEntry
    }
    return nowhere
  }

  /** At most as many names as the limit of escapes. */
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

/** Characters that a name can contain only as escapes. Texts with other control characters do not parse at all. */
const neverPlain = /["\\]/

const grown = (entries: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
  const more = new Int32Array(2 * entries.length)
  more.set(entries)
  return more
}
