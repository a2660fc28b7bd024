import { isExactNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { positionOf } from "@tidegate/json/JsonPath"
import { didYouMean } from "@tidegate/model/NearestName"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import { Result, type Schema } from "effect"
import { readToken, type Segment, type Token } from "./MappingToken.ts"
import { jsonLengthWithin } from "./JsonLength.ts"

/**
 * The inputs of workflow steps: any JSON whose texts can contain tokens like `{{ trigger.body.order.id ?? "none" }}`. A text
 * that consists of one token becomes its value, with its type; otherwise the value is inserted into the text, objects and lists as
 * compact JSON. `\{{` writes two braces.
 *
 * A path consists of `.name`, `["odd key"]`, `[0]`, `[-1]` (the last) and `[]` (each element: returns a list). Only own members are read.
 * There are no expressions and no calls: the cost of resolving is proportional to the output, which is limited.
 */

type Json = Schema.Json

/** Tokens in one text. */
export const maxTokens = 100

/** Nesting levels of the inputs as they are written. */
export const maxLevels = 20

/** Maximum length of resolved inputs as JSON, in characters. */
export const maxResolvedLength = 1_048_576

/** The roots of paths in workflows, and in tests of their parts. */
export const contextRoots = ["trigger", "steps", "run", "workflow", "source", "item", "item_index"] as const

/** Why a value is no valid mapping. `path` is the place, like `body.lines[0].sku`; empty for the whole. */
export interface MappingInvalid {
  readonly path: string
  readonly message: string
}

/** A value that a mapping reads, and the place in the mapping. */
export interface Reference {
  readonly root: string
  /** The names after the root, such as the id in `steps.<id>`; null for a place in a list. */
  readonly way: ReadonlyArray<string | null>
  readonly path: string
}

export type Resolved =
  /** `missing`: the paths in the mapping whose token found no value and has no `??` value, each once. */
  | { readonly kind: "resolved"; readonly value: Json; readonly missing: ReadonlyArray<string> }
  | { readonly kind: "too_large" }

export interface Mapping {
  readonly references: ReadonlyArray<Reference>
  readonly resolve: (context: Readonly<Record<string, unknown>>) => Resolved
}

/**
 * Compiles a value once. Resumable, because thousands of tokens with long paths take a tenth of a second. `roots`: the names with which a path can
 * begin.
 */
export function* compilingMapping(
  value: unknown,
  roots: ReadonlyArray<string>
): Resumable<Result.Result<Mapping, MappingInvalid>> {
  try {
    const compiler = new Compiler(roots)
    const read = yield* compiler.value(value, "", 1)
    return Result.succeed({ references: compiler.references, resolve: (context) => resolve(read, context) })
  } catch (error) {
    if (error instanceof Refused) return Result.fail({ path: error.path, message: error.message })
    throw error
  }
}

/** The same without pauses, for small values. */
export const compileMapping = (value: unknown, roots: ReadonlyArray<string>): Result.Result<Mapping, MappingInvalid> =>
  runToEnd(compilingMapping(value, roots))

class Refused extends Error {
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/** Ends a resolution that grows too large; `resolve` catches it. */
class TooLarge extends Error {}

/** The state of one resolution. */
class Reading {
  readonly context: Readonly<Record<string, unknown>>
  /** Each path once; null if there is none. */
  missing: Set<string> | null = null
  private left = maxResolvedLength

  constructor(context: Readonly<Record<string, unknown>>) {
    this.context = context
  }

  misses(path: string): void {
    this.missing ??= new Set()
    this.missing.add(path)
  }

  spend(length: number): void {
    this.left -= length
    if (this.left < 0) throw new TooLarge()
  }

  /** Returns a value unchanged; its length as JSON counts towards the limit. */
  take(value: Json): Json {
    this.spend(this.lengthOf(value))
    return value
  }

  /** Returns a value as text. Its length is checked first, because writing megabytes that are then refused is wasteful. */
  text(value: Json): string {
    if (value === null) return ""
    if (this.lengthOf(value) > this.left) throw new TooLarge()
    const text = typeof value === "string" ? value : JSON.stringify(value)
    this.spend(text.length)
    return text
  }

  private lengthOf(value: Json): number {
    return jsonLengthWithin(value, this.left) ?? this.left + 1
  }
}

type Read = (reading: Reading) => Json

const none: ReadonlyArray<string> = []

const resolve = (read: Read, context: Readonly<Record<string, unknown>>): Resolved => {
  const reading = new Reading(context)
  try {
    const value = read(reading)
    return { kind: "resolved", value, missing: reading.missing === null ? none : [...reading.missing] }
  } catch (error) {
    if (error instanceof TooLarge) return { kind: "too_large" }
    throw error
  }
}

/** Characters that are compiled between two yields, with an addition for each value: a millisecond or two. */
const partLength = 16_384
const valueLength = 16

class Compiler {
  readonly references: Array<Reference> = []
  private readonly roots: ReadonlyArray<string>
  private left = partLength

  constructor(roots: ReadonlyArray<string>) {
    this.roots = roots
  }

  *value(value: unknown, path: string, level: number): Resumable<Read> {
    this.left -= valueLength
    if (typeof value === "string") this.left -= value.length
    if (this.left < 0) {
      yield
      this.left = partLength
    }
    return this.plain(value, path) ?? (yield* this.nested(value, path, level))
  }

  private plain(value: unknown, path: string): Read | null {
    if (typeof value === "string") return this.string(value, path)
    if (value !== null && typeof value !== "boolean" && !Number.isFinite(value) && !isExactNumber(value)) return null
    const plain = value as Json
    return (reading) => reading.take(plain)
  }

  private *nested(value: unknown, path: string, level: number): Resumable<Read> {
    if (level > maxLevels) throw new Refused(path, `is nested deeper than ${maxLevels} levels`)
    if (Array.isArray(value)) {
      const elements: Array<Read> = []
      for (const [i, element] of value.entries()) elements.push(yield* this.value(element, `${path}[${i}]`, level + 1))
      return (reading) => elements.map((read) => read(reading))
    }
    if (!isJsonObject(value)) throw new Refused(path, "is not a JSON value")
    const members: Array<readonly [key: string, read: Read]> = []
    for (const key of Object.keys(value)) {
      members.push([key, yield* this.value(value[key], below(path, key), level + 1)])
    }
    return (reading) => {
      const object: Record<string, Json> = {}
      for (const [key, read] of members) {
        reading.spend(key.length + 4)
        define(object, key, read(reading))
      }
      return object
    }
  }

  private string(text: string, path: string): Read {
    const pieces: Array<string | Token> = []
    let plain = ""
    let tokens = 0
    let at = 0
    for (;;) {
      const open = text.indexOf("{{", at)
      if (open < 0) break
      if (open > at && text[open - 1] === "\\") {
        plain += `${text.slice(at, open - 1)}{{`
        at = open + 2
        continue
      }
      const found = readToken(text, open + 2)
      if (typeof found === "string") throw new Refused(path, `${found} (character ${open + 1})`)
      if (++tokens > maxTokens) throw new Refused(path, `holds more than ${maxTokens} tokens`)
      plain += text.slice(at, open)
      if (plain !== "") pieces.push(plain)
      plain = ""
      pieces.push(this.token(found.token, path))
      at = found.end
    }
    plain += text.slice(at)
    if (plain !== "") pieces.push(plain)
    const [first] = pieces
    if (pieces.length === 1 && typeof first === "object") return (reading) => reading.take(found(first, path, reading))
    if (tokens === 0) return (reading) => reading.take(plain)
    return (reading) => {
      reading.spend(2)
      let whole = ""
      for (const piece of pieces) {
        if (typeof piece === "string") reading.spend(piece.length)
        whole += typeof piece === "string" ? piece : reading.text(found(piece, path, reading))
      }
      return whole
    }
  }

  /** Header names are compared in lower case. */
  private token(token: Token, path: string): Token {
    if (!this.roots.includes(token.root)) {
      throw new Refused(
        path,
        `a path begins with one of ${this.roots.join(", ")}, not with ${token.root}${didYouMean(token.root, this.roots)}`
      )
    }
    const [first, second, ...below] = token.rest
    const way = token.rest.map((segment) => (segment.kind === "key" ? segment.key : null))
    this.references.push({ root: token.root, way, path })
    if (first?.kind !== "key" || first.key !== "headers" || second?.kind !== "key") return token
    return { ...token, rest: [first, { kind: "key", key: second.key.toLowerCase() }, ...below] }
  }
}

const below = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`)

/** Defines an own member with any name, including `__proto__`. */
export const define = <A>(object: Record<string, A>, key: string, value: A): void => {
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  else object[key] = value
}

const found = ({ fallback, rest, root }: Token, path: string, reading: Reading): Json => {
  const value = valueAt(Object.hasOwn(reading.context, root) ? reading.context[root] : undefined, rest, 0, reading)
  if (value !== undefined && value !== null) return value as Json
  if (fallback !== undefined) return fallback
  if (value === undefined) reading.misses(path)
  return null
}

/**
 * Below each element of a list, every path segment counts towards the limit: a long path that finds nothing in a long list is much work for
 * a short result.
 */
const valueAt = (root: unknown, path: ReadonlyArray<Segment>, from: number, reading: Reading): unknown => {
  let value = root
  for (let i = from; i < path.length; i++) {
    const segment = path[i]!
    if (from > 0) reading.spend(1)
    if (segment.kind === "each") {
      return Array.isArray(value) ? value.map((element) => valueAt(element, path, i + 1, reading) ?? null) : undefined
    }
    if (Array.isArray(value)) {
      value = value.at(segment.kind === "index" ? segment.index : positionFrom(segment.key, value.length))
    } else if (segment.kind === "key" && isJsonObject(value) && Object.hasOwn(value, segment.key)) {
      value = value[segment.key]
    } else {
      return undefined
    }
  }
  return value
}

/** `items.0` names an element. Any other name returns the index after the last element, where there is nothing. */
const positionFrom = (key: string, length: number): number => {
  const position = positionOf(key)
  return position < 0 ? length : position
}
