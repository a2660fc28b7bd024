import { createHash } from "node:crypto"
import { canonicalNumber, isExactNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { type PathSegment, positionOf } from "@tidegate/json/JsonPath"
import { Predicate } from "effect"

/**
 * Digests of JSON values: equal for values that are deeply equal, whatever the order of keys and the way numbers were
 * written (`1`, `1.0`, `-0`, `1e0`), and different otherwise. Texts are compared code unit by code unit.
 */

/**
 * Values that one digest may hold, where 64 characters of text count like one more, and an object once more for each of its
 * keys, which have to be sorted. More than a body that is parsed at all comes to; 40 ms at worst.
 */
const maxWork = 400_000

/** Longer texts are digested as they are: to write one as JSON takes several times as long. */
const longText = 65_536

/** Levels of one value: far above real data, far below the stack's end. */
const maxDepth = 500

/** Places that are left out of a digest, as a tree of steps. */
export interface Omission {
  /** The place itself, with all that is below. */
  whole: boolean
  /** By key of an object; in an array, a key that is a number is an index. */
  readonly keys: Map<string, Omission>
  readonly indexes: Map<number, Omission>
  /** Below every element of an array. */
  each: Omission | null
}

export const omitNothing = (): Omission => ({ whole: false, keys: new Map(), indexes: new Map(), each: null })

/** Adds one place to what `omission` leaves out. */
export const omit = (omission: Omission, path: ReadonlyArray<PathSegment>): void => {
  let at = omission
  for (const segment of path) at = stepInto(at, segment)
  at.whole = true
}

const stepInto = (at: Omission, segment: PathSegment): Omission => {
  if (segment.kind === "each" || segment.kind === "element") return (at.each ??= omitNothing())
  const known = segment.kind === "key" ? at.keys.get(segment.key) : at.indexes.get(segment.index)
  if (known !== undefined) return known
  const next = omitNothing()
  if (segment.kind === "key") at.keys.set(segment.key, next)
  else at.indexes.set(segment.index, next)
  return next
}

type Omissions = ReadonlyArray<Omission>

const none: Omissions = []

/** Null: what stands there is left out. */
const choose = (found: ReadonlyArray<Omission | null | undefined>): Omissions | null => {
  const chosen = found.filter(Predicate.isNotNullish)
  return chosen.some(({ whole }) => whole) ? null : chosen
}

export interface Digest {
  /** Adds a value, without what is to be left out. A place that is left out of an array keeps its position. */
  readonly add: (value: unknown, omission?: Omission) => void
  /** Pays for work done elsewhere on behalf of this digest; false when there is none left. */
  readonly spend: (work: number) => boolean
  /** SHA-256 in base64url, 43 characters; null when the values were too many, too large or nested too deep. */
  readonly end: () => string | null
}

export const startDigest = (): Digest => {
  const hash = createHash("sha256")
  let text = ""
  let work = maxWork

  const write = (piece: string): void => {
    text += piece
    if (text.length < 65_536) return
    hash.update(text)
    text = ""
  }

  const spend = (cost: number): boolean => {
    work -= cost
    return work >= 0
  }

  const add = (value: unknown, omissions: Omissions, depth: number): void => {
    if (depth > maxDepth) work = -1
    if (!spend(1)) return
    if (typeof value === "string") return addText(value)
    if (Array.isArray(value)) return addArray(value, omissions, depth)
    if (isExactNumber(value)) return addNumber(canonicalNumber(value))
    if (isJsonObject(value)) return addObject(value, omissions, depth)
    write(JSON.stringify(value ?? null))
  }

  const addText = (value: string): void => {
    if (!spend(value.length >> 6)) return
    if (value.length <= longText || !value.isWellFormed()) return write(JSON.stringify(value))
    // No JSON begins like this, and the length says where it ends.
    hash.update(`${text}text ${value.length}:`).update(value)
    text = ""
  }

  const addNumber = (digits: string): void => {
    if (spend(digits.length >> 6)) write(digits)
  }

  const addArray = (values: ReadonlyArray<unknown>, omissions: Omissions, depth: number): void => {
    const each = omissions.map((omission) => omission.each)
    const shared = choose(each)
    const positions = omissions.some(({ indexes, keys }) => indexes.size > 0 || keys.size > 0)
    write("[")
    for (let i = 0; i < values.length; i++) {
      if (work < 0) return
      if (i > 0) write(",")
      const below = positions
        ? choose([...each, ...omissions.flatMap((at) => [at.indexes.get(i), at.keys.get(String(i))])])
        : shared
      if (below === null) spend(1)
      else add(values[i], below, depth + 1)
    }
    write("]")
  }

  const addObject = (object: { readonly [key: string]: unknown }, omissions: Omissions, depth: number): void => {
    const keys = Object.keys(object)
    if (!spend(keys.length)) return
    let separator = "{"
    for (const key of keys.sort()) {
      if (work < 0) return
      const below = omissions.length === 0 ? none : choose(omissions.map((omission) => omission.keys.get(key)))
      if (below === null) continue
      write(separator)
      addText(key)
      write(":")
      add(object[key], below, depth + 1)
      separator = ","
    }
    write(separator === "{" ? "{}" : "}")
  }

  return {
    add: (value, omission) => {
      if (omission?.whole !== true) add(value, omission === undefined ? none : [omission], 0)
      write("\n")
    },
    spend,
    end: () => (work < 0 ? null : hash.update(text).digest("base64url"))
  }
}

/**
 * What `path` finds in `value`: undefined when nothing; with `[*]`, a list with what each element has there, in which
 * null stands for an element that has nothing. Own properties only.
 */
export const findAt = (value: unknown, path: ReadonlyArray<PathSegment>, digest: Digest, from = 0): unknown => {
  const segment = path[from]
  if (segment === undefined || value === undefined || !digest.spend(1)) return value
  if (Array.isArray(value)) {
    if (segment.kind === "each") {
      let found = false
      const all = value.map((element: unknown) => {
        const one = findAt(element, path, digest, from + 1) ?? null
        found ||= one !== null
        return one
      })
      return found ? all : undefined
    }
    const index = segment.kind === "index" ? segment.index : segment.kind === "key" ? positionOf(segment.key) : -1
    return findAt(value[index], path, digest, from + 1)
  }
  if (segment.kind !== "key" || !isJsonObject(value) || !Object.hasOwn(value, segment.key)) {
    return undefined
  }
  return findAt(value[segment.key], path, digest, from + 1)
}
