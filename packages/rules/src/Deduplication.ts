import { parsePath, type PathSegment } from "@tidegate/json/JsonPath"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { DeduplicateRule } from "@tidegate/model/Rule"
import { Predicate, Result } from "effect"
import { type Digest, findAt, omit, omitNothing, type Omission, startDigest } from "./Canonical.ts"
import { compilingFilter, type FilterInput } from "./Filter.ts"
import { PatternBounds } from "./PatternBounds.ts"

/**
 * Detects duplicates by a connection's deduplicate rule. A request whose key cannot be computed is delivered: fails open, because
 * a receiver can recognise a second delivery, but an event that was wrongly treated as a duplicate is missing.
 */
export interface Deduplication {
  /**
   * Equal for requests that agree in the fields of the rule: SHA-256 in base64url, 43 characters. Unique within
   * one connection only. Null if the rule does not apply to the request: it does not match the rule's predicates, has none of the
   * included fields, or exceeds the cost limit of a key.
   *
   * Without fields, method, path, query and body count, but no headers: senders and proxies add headers (ids, times,
   * signatures, hops) that differ between two deliveries of the same content. A header counts if it is included.
   */
  readonly key: (request: FilterInput) => string | null
  /** Milliseconds after the first request with a key in which further ones are duplicates. */
  readonly windowMs: number
}

/**
 * Compiles a stored rule, which was valid when it was written. If it is not valid any more, it returns no keys (and so fails open).
 * Resumable, like `compilingFilter`.
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

/** The fields, each once; null if one is not a valid path. */
const fieldsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Field> | null => {
  const fields = [...new Set(texts)].map(fieldOf)
  return fields.every(Predicate.isNotNull) ? fields : null
}

/** The value of a root; undefined if the root is unknown. */
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

/** A digest that begins with the rule's kind and fields: a changed rule never produces keys of the old one. */
const digestOf = (kind: string, texts: ReadonlyArray<string>): Digest => {
  const digest = startDigest()
  digest.add([kind, ...texts])
  return digest
}

/** A missing field counts as null. A request without any of the fields has no key, because otherwise all such requests would be duplicates. */
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

/** A digest of the request without the excluded parts; no key if everything is excluded. */
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
