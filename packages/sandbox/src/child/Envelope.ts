import type { Values } from "@tidegate/model/Message"
import type { TransformRequest } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"

type Members = Omit<TransformRequest, "body">

/** Thrown if a returned request cannot be sent on; the message is for the author of the code. */
export class InvalidEnvelope extends Error {}

const methods: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
// What a field value may hold (RFC 9110): no control characters but tab, and nothing beyond one byte.
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
const isControl = /\p{Cc}/u
const notInPath = /[?#\\]/

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const quoted = (text: string): string => JSON.stringify(text.slice(0, 64))

const scalar = (value: unknown, what: string): string => {
  if (typeof value === "string") return value
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  throw new InvalidEnvelope(`${what} is not a string`)
}

/** Converts each value to text; null removes the name, and a list of one becomes a text. */
const valuesOf = (given: unknown, what: string, check = (_name: string, value: string): string => value): Values => {
  if (!isObject(given)) throw new InvalidEnvelope(`${what} is not an object`)
  const values: Array<[string, string | ReadonlyArray<string>]> = []
  for (const [name, value] of Object.entries(given)) {
    if (value === null) continue
    if (!Array.isArray(value)) {
      values.push([name, check(name, scalar(value, `${what} ${quoted(name)}`))])
      continue
    }
    const list = value.map((one) => check(name, scalar(one, `${what} ${quoted(name)}`)))
    if (list.length > 0) values.push([name, list.length === 1 ? (list[0] ?? "") : list])
  }
  return Object.fromEntries(values)
}

const exceeds = (what: string, most: number, unit: string): never => {
  throw new InvalidEnvelope(`${what} more than ${most} ${unit}`)
}

/** Throws if a target would not accept the headers. Each character is one byte. */
const checkHeaders = (headers: Values): void => {
  let count = 0
  let bytes = 0
  for (const [name, value] of Object.entries(headers)) {
    if (name.length > callLimits.headerNameBytes)
      exceeds(`the header name ${quoted(name)} has`, callLimits.headerNameBytes, "bytes")
    for (const one of typeof value === "string" ? [value] : value) {
      if (one.length > callLimits.headerValueBytes)
        exceeds(`header ${quoted(name)} has`, callLimits.headerValueBytes, "bytes")
      count++
      bytes += name.length + one.length
    }
  }
  if (count > callLimits.headers) exceeds("there are", callLimits.headers, "headers")
  if (bytes > callLimits.headersBytes) exceeds("the headers have", callLimits.headersBytes, "bytes")
}

/** Headers that the code returned unchanged are the sender's, and within the limits of the ingress. */
const boundedHeaders = (headers: Values, original: Values): Values => {
  try {
    checkHeaders(headers)
  } catch (error) {
    if (JSON.stringify(headers) !== JSON.stringify(original)) throw error
  }
  return headers
}

/** Names are converted to lower case; of names that differ only in case, the last counts. */
const headersOf = (given: unknown): Values => {
  const headers = valuesOf(given, "headers", (name, value) => {
    if (!token.test(name)) throw new InvalidEnvelope(`${quoted(name)} is not a header name`)
    if (!fieldValue.test(value)) throw new InvalidEnvelope(`the value of header ${quoted(name)} cannot be sent`)
    return value
  })
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

const escaped = (text: string): string => encodeURIComponent(text.toWellFormed())

const pathOf = (given: unknown): string => {
  if (typeof given !== "string" || !given.startsWith("/")) throw new InvalidEnvelope('path does not start with "/"')
  if (isControl.test(given) || notInPath.test(given))
    throw new InvalidEnvelope("path holds a character that no path has")
  const path = given.replaceAll(/[^\x21-\x7e]+/g, escaped)
  return path.length <= callLimits.pathBytes ? path : exceeds("the path has", callLimits.pathBytes, "bytes")
}

const methodOf = (given: unknown): string => {
  const method = typeof given === "string" ? given.toUpperCase() : ""
  if (!methods.has(method)) throw new InvalidEnvelope(`method is none of ${[...methods].join(", ")}`)
  return method
}

const boundedQuery = (query: string): string =>
  query.length <= callLimits.queryBytes ? query : exceeds("the query has", callLimits.queryBytes, "bytes")

const formatQuery = (values: Values): string => {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    for (const one of typeof value === "string" ? [value] : value) pairs.append(name, one)
  }
  if (pairs.size > callLimits.queryValues) exceeds("the query has", callLimits.queryValues, "values")
  return boundedQuery(pairs.toString())
}

/** Same as the query parser of `model`, which a child cannot load because it may read this package only. */
const parseQuery = (query: string): Values => {
  const pairs = new URLSearchParams(query)
  return Object.fromEntries(
    [...new Set(pairs.keys())].map((name) => {
      const all = pairs.getAll(name)
      return [name, all.length === 1 ? (all[0] ?? "") : all]
    })
  )
}

const queryText = (given: string): string => {
  if (isControl.test(given)) throw new InvalidEnvelope("query holds a control character")
  return boundedQuery(given.replace(/^\?/, "").replaceAll(/[^\x21-\x7e]+|["#<>]/g, escaped))
}

const sameValues = (left: Values, right: Values): boolean => {
  const names = Object.keys(left)
  if (names.length !== Object.keys(right).length) return false
  return names.every((name) => Object.hasOwn(right, name) && String(left[name]) === String(right[name]))
}

/** Uses `query` if it differs from the original, else `parsed_query` if that differs. */
const queryOf = (original: Members, query: unknown, parsed: unknown): Pick<Members, "query" | "parsed_query"> => {
  if (isObject(query)) {
    const values = valuesOf(query, "query")
    return { query: formatQuery(values), parsed_query: values }
  }
  if (query !== undefined && query !== original.query) {
    if (query !== null && typeof query !== "string")
      throw new InvalidEnvelope("query is neither a string nor an object")
    const text = queryText(query ?? "")
    return { query: text, parsed_query: parseQuery(text) }
  }
  if (parsed !== undefined) {
    const values = valuesOf(parsed, "parsed_query")
    if (!sameValues(values, original.parsed_query)) return { query: formatQuery(values), parsed_query: values }
  }
  return { query: original.query, parsed_query: original.parsed_query }
}

/**
 * Builds the returned request from its members as JSON text. Members that are missing or unchanged are taken from the original,
 * whatever their size. Throws `InvalidEnvelope`.
 */
export const settleMembers = (original: Members, text: string): Members => {
  if (text.length > callLimits.membersLength) throw new InvalidEnvelope("headers, query and path are too long")
  const members: unknown = JSON.parse(text)
  if (!isObject(members)) throw new InvalidEnvelope("the returned request is not an object")
  const { headers, query, parsed_query, path, method } = members
  return {
    headers: headers === undefined ? original.headers : boundedHeaders(headersOf(headers), original.headers),
    ...queryOf(original, query, parsed_query),
    path: path === undefined || path === original.path ? original.path : pathOf(path),
    method: method === undefined || method === original.method ? original.method : methodOf(method)
  }
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openings: ReadonlySet<number> = new Set([0x5b, 0x7b])
const closings: ReadonlySet<number> = new Set([0x5d, 0x7d])

/** Measures the nesting depth of JSON text, and counts its objects, lists and commas; `stop` ends the count early. */
const measure = (json: string, stop: (depth: number, objects: number, commas: number) => boolean) => {
  let depth = 0
  let objects = 0
  let commas = 0
  let inString = false
  for (let i = 0; i < json.length; i++) {
    const unit = json.charCodeAt(i)
    if (inString) {
      if (unit === backslash) i++
      else if (unit === quote) inString = false
    } else if (unit === quote) inString = true
    else if (unit === comma) {
      commas++
      if (stop(depth, objects, commas)) break
    } else if (openings.has(unit)) {
      objects++
      depth++
      if (stop(depth, objects, commas)) break
    } else if (closings.has(unit)) depth--
  }
  return { depth, objects, commas }
}

/**
 * Why the JSON text of a returned body cannot be parsed and processed safely later; null if it can. Each object and list counts as
 * one value more than it has, because it may be empty.
 */
export const bodyFault = (json: string): string | null => {
  // Shorter text cannot exceed the limits.
  if (json.length <= 2 * callLimits.depth) return null
  const isTooDeep = (depth: number) => depth > callLimits.depth
  const isTooMany = (objects: number, commas: number) => objects + commas >= callLimits.values
  const { commas, depth, objects } = measure(
    json,
    (depth, objects, commas) => isTooDeep(depth) || isTooMany(objects, commas)
  )
  if (isTooDeep(depth)) return `the body is nested deeper than ${callLimits.depth} levels`
  return isTooMany(objects, commas) ? `the body has more than ${callLimits.values} values` : null
}

/** Characters of JSON text that always fit into memory. */
const alwaysFits = 1_048_576
/** Bytes of an empty object or list, and of a slot for one more value (measured). The text itself is in memory twice, as input and as output. */
const objectBytes = 56
const placeBytes = 16

/**
 * Whether the values of JSON text exceed an isolate's memory. Checked before parsing: V8 parses in one go. It would first
 * fill the memory and then search for garbage for longer than the call may take.
 */
export const isTooMuch = (json: string): boolean => {
  if (json.length <= alwaysFits) return false
  const { objects, commas } = measure(json, () => false)
  return json.length * 2 + objects * objectBytes + commas * placeBytes > callLimits.memoryMib * 1_048_576
}
