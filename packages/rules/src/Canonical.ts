import { createHash } from "node:crypto"
import { canonicalNumber, isExactNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { type PathSegment, positionOf } from "@tidegate/json/JsonPath"
import { Predicate } from "effect"

/**
 * Digests of JSON values: equal for values that are deeply equal, whatever the order of keys and the way numbers were
 * written (`1`, `1.0`, `-0`, `1e0`), and different otherwise. Texts are compared code unit by code unit.
 */

/**
 * Values that one digest may contain. 64 characters of text count as one more, and an object counts each of its keys again,
 * because they have to be sorted. More than any body that is parsed contains; 40 ms at worst.
 */
const maxWork = 400_000

/** Longer texts are hashed directly, because writing them as JSON takes several times as long. */
const longText = 65_536

/** Nesting levels of one value: far above real data, and far below a stack overflow. */
const maxDepth = 500

/** Places that a digest leaves out, as a tree of path segments. */
export interface Omission {
  /** The place itself is left out, with everything below it. */
  whole: boolean
  /** By the key of an object; for an array, a numeric key is an index. */
  readonly keys: Map<string, Omission>
  readonly indexes: Map<number, Omission>
  /** Applies below every element of an array. */
  each: Omission | null
}

export const omitNothing = (): Omission => ({ whole: false, keys: new Map(), indexes: new Map(), each: null })

/** Adds one place to those that `omission` leaves out. */
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

/** Null if the value itself is left out. */
const choose = (found: ReadonlyArray<Omission | null | undefined>): Omissions | null => {
  const chosen = found.filter(Predicate.isNotNullish)
  return chosen.some(({ whole }) => whole) ? null : chosen
}

export interface Digest {
  /** Adds a value, without the omitted places. Elements after an omitted one keep their index. */
  readonly add: (value: unknown, omission?: Omission) => void
  /** Counts work done elsewhere for this digest; false if the limit is used up. */
  readonly spend: (work: number) => boolean
  /** SHA-256 in base64url, 43 characters; null if there were too many values, or too large or too deeply nested ones. */
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
    // No JSON begins like this, and the length marks the end.
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
 * The value at `path`; undefined if there is none. With `[*]` it is a list of each element's value, with null for elements that
 * have none. Own properties only.
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
