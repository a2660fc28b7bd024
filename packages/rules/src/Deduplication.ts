import { parsePath, type PathSegment } from "@tidegate/json/JsonPath"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { DeduplicateRule } from "@tidegate/model/Rule"
import { Predicate, Result } from "effect"
import { type Digest, findAt, omit, omitNothing, type Omission, startDigest } from "./Canonical.ts"
import { compilingFilter, type FilterInput } from "./Filter.ts"
import { PatternBounds } from "./PatternBounds.ts"

/**
 * Which requests of a connection are the same, by its deduplicate rule. Where that cannot be told a request has no key
 * and is delivered: fails open, because a second delivery can be recognised by its receiver, and an event that was
 * taken for a duplicate is missing.
 */
export interface Deduplication {
  /**
   * Equal for requests that agree in the fields of the rule: SHA-256 in base64url, 43 characters. It is unique within
   * one connection only. Null when the request takes no part: it does not match the rule's predicates, has none of the
   * included fields, or is more than a key may cost.
   *
   * Without fields, the method, path, query and body count, and no header: what senders and proxies put there (ids,
   * times, signatures, hops) differs between two deliveries of the same thing. A header counts when it is included.
   */
  readonly key: (request: FilterInput) => string | null
  /** Milliseconds from the first request of a key in which the others are duplicates. */
  readonly windowMs: number
}

/**
 * Compiles a stored rule; it was valid when it was written. One that no longer is makes no keys (and so fails open).
 * In parts, as `compilingFilter`.
 */
export function* compilingDeduplication(rule: DeduplicateRule): Resumable<Deduplication> {
  const predicates = Result.getOrNull(
    yield* compilingFilter({ headers: rule.headers, body: rule.body }, { patterns: PatternBounds.stored() })
  )
  const keyOf = rule.include_fields === undefined ? wholeKey(rule.exclude_fields ?? []) : fieldsKey(rule.include_fields)
  return {
    windowMs: rule.window,
    key: (request) => {
      if (predicates === null || keyOf === null || predicates.failingTargets(request).length > 0) return null
      return keyOf(request)
    }
  }
}

type KeyOf = (request: FilterInput) => string | null

interface Field {
  readonly root: string
  readonly rest: ReadonlyArray<PathSegment>
}

const fieldOf = (text: string): Field | null => {
  const [root, ...rest] = parsePath(text) ?? []
  if (root?.kind !== "key") return null
  const [name, ...below] = rest
  return root.key === "headers" && name?.kind === "key"
    ? { root: root.key, rest: [{ kind: "key", key: name.key.toLowerCase() }, ...below] }
    : { root: root.key, rest }
}

/** The fields, each once; null when one is not a path. */
const fieldsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Field> | null => {
  const fields = [...new Set(texts)].map(fieldOf)
  return fields.every(Predicate.isNotNull) ? fields : null
}

/** What a root names; undefined for an unknown one. */
const rootOf = (request: FilterInput, root: string): unknown => {
  switch (root) {
    case "body":
      return request.body()
    case "headers":
      return request.headers
    case "query":
      return request.query
    case "path":
      return request.path
    case "method":
      return request.method
    default:
      return undefined
  }
}

/** A digest that begins with what it is of: a rule that is changed makes no keys that the old one made. */
const digestOf = (kind: string, texts: ReadonlyArray<string>): Digest => {
  const digest = startDigest()
  digest.add([kind, ...texts])
  return digest
}

/** A field that is missing counts as null; a request in which all of them are has no key, else all such were one. */
const fieldsKey = (texts: ReadonlyArray<string>): KeyOf | null => {
  const fields = fieldsOf(texts)
  if (fields === null) return null
  return (request) => {
    const digest = digestOf("include", texts)
    let found = false
    for (const { rest, root } of fields) {
      const value = findAt(rootOf(request, root), rest, digest) ?? null
      found ||= value !== null
      digest.add(value)
    }
    return found ? digest.end() : null
  }
}

const wholeRoots = ["method", "path", "query", "body"]

/** The request but for what is excluded; without a key when that is everything. */
const wholeKey = (texts: ReadonlyArray<string>): KeyOf | null => {
  const fields = fieldsOf(texts)
  if (fields === null) return null
  const omissions = new Map<string, Omission>()
  for (const { rest, root } of fields) {
    const omission = omissions.get(root) ?? omitNothing()
    omit(omission, rest)
    omissions.set(root, omission)
  }
  const roots = wholeRoots.filter((root) => omissions.get(root)?.whole !== true)
  if (roots.length === 0) return null
  return (request) => {
    const digest = digestOf("exclude", texts)
    for (const root of roots) digest.add(rootOf(request, root), omissions.get(root))
    return digest.end()
  }
}
