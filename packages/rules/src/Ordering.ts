import { hash } from "node:crypto"
import { canonicalNumber, isExactNumber, isJsonObject, plainNumber } from "@tidegate/json/ExactNumber"
import { parsePath, type PathSegment, positionOf } from "@tidegate/json/JsonPath"
import { Result } from "effect"
import { complain, type Complaint } from "./Decode.ts"
import type { FilterInput } from "./Filter.ts"

/** The ordering key of a connection's events. */
export interface OrderingKey {
  /**
   * Equal for requests with the same value at the path; such events are delivered one after the other. A short hash: two different values may
   * share it, which only delays them. Null if the request has no text, number or boolean there, or a text that is too long: the event
   * is then delivered without an order.
   */
  readonly of: (request: FilterInput) => string | null
  /** Whether the body has to be parsed. */
  readonly looksAtBody: boolean
}

/** Maximum length of a key's value, in bytes. */
const longestKey = 1_024
/** Characters of the hash that are used: 66 bits. */
const kept = 11

/** Finds one value of a request; undefined if the request has none there. */
export interface RequestValue {
  readonly of: (request: FilterInput) => unknown
  /** Whether the body has to be parsed. */
  readonly looksAtBody: boolean
}

/** Compiles a path to one value in body, headers or query. */
export const compileRequestValue = (path: string): Result.Result<RequestValue, Complaint> => {
  const [root, ...rest] = parsePath(path) ?? []
  if (root?.kind !== "key" || rest.length === 0) {
    return complain("key", "must be a path into body, headers or query, like body.customer.id")
  }
  if (rest.some(({ kind }) => kind === "each" || kind === "element")) {
    return complain("key", "must name one value: [*] and [$index] cannot be used")
  }
  switch (root.key) {
    case "body":
      return Result.succeed({ of: (request) => valueAt(request.body(), rest), looksAtBody: true })
    case "headers": {
      const [name, ...below] = rest
      const path: ReadonlyArray<PathSegment> =
        name?.kind === "key" ? [{ kind: "key", key: name.key.toLowerCase() }, ...below] : rest
      return Result.succeed({ of: (request) => valueAt(request.headers, path), looksAtBody: false })
    }
    case "query":
      return Result.succeed({ of: (request) => valueAt(request.query, rest), looksAtBody: false })
    default:
      return complain("key", "must begin with body, headers or query")
  }
}

/** Compiles such a path to the ordering key of what is there. */
export const compileOrdering = (path: string): Result.Result<OrderingKey, Complaint> =>
  Result.map(compileRequestValue(path), ({ looksAtBody, of }) => ({
    of: (request) => keyOf(of(request)),
    looksAtBody
  }))

const valueAt = (value: unknown, path: ReadonlyArray<PathSegment>): unknown => {
  let found = value
  for (const segment of path) {
    if (Array.isArray(found)) {
      const index = segment.kind === "index" ? segment.index : segment.kind === "key" ? positionOf(segment.key) : -1
      found = (found as ReadonlyArray<unknown>)[index]
    } else if (segment.kind === "key" && isJsonObject(found) && Object.hasOwn(found, segment.key)) {
      found = found[segment.key]
    } else return undefined
  }
  return found
}

/** A number and its text have the same key, because senders write ids in both ways. */
const keyOf = (value: unknown): string | null => {
  const isExact = isExactNumber(value)
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean" && !isExact) return null
  const text = isExact ? (plainNumber(value) ?? canonicalNumber(value)) : String(value)
  if (text.length > longestKey || Buffer.byteLength(text) > longestKey) return null
  return hash("sha1", text, "base64url").slice(0, kept)
}
