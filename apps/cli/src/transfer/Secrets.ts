import { areEqualNumbers, isExactNumber } from "@tidegate/json/ExactNumber"
import { looksMasked, maskSecret } from "@tidegate/redaction/Masking"
import { isObject, type Json, type JsonObject, type Path } from "./Json.ts"

/* Secrets are never in the file. A secret is replaced by `{$env: NAME}`, the name of the variable that contains it. */

export const referenceTo = (value: Json): string | null => {
  const name = isObject(value) ? value["$env"] : undefined
  return typeof name === "string" && Object.keys(value as JsonObject).length === 1 ? name : null
}

/** A URL whose end is masked: `https://chat.example/hooks/****abcd`. */
const maskedUrl = /^(https?:\/\/[^*]*)(\*{4}[^]{0,4})$/u

const readsMasked = (text: string): boolean => looksMasked.test(text) || maskedUrl.test(text)

/** Whether `text` has the mask `shown`. */
const isMaskOf = (shown: string, text: string): boolean => {
  if (looksMasked.test(shown)) return maskSecret(text) === shown
  const [, before, mask] = maskedUrl.exec(shown) ?? []
  return before !== undefined && text.startsWith(before) && maskSecret(text.slice(before.length)) === mask
}

const named = (parts: ReadonlyArray<string | number>): string =>
  ["tidegate", ...parts]
    .map((part) =>
      String(part)
        .toUpperCase()
        .replace(/[^A-Z0-9]+/g, "_")
        .replace(/^_+|_+$/g, "")
    )
    .filter((part) => part !== "")
    .join("_")

/** Replaces secrets by references, each with a unique name in the file. */
export const referrer = () => {
  const used = new Set<string>()
  const reference = (path: Path): Json => {
    const name = named(path)
    let free = name
    for (let n = 2; used.has(free); n++) free = `${name}_${n}`
    used.add(free)
    return { $env: free }
  }
  /** `isSecret` decides about each text; by default masked texts are secrets. */
  const hide = (value: Json, path: Path, isSecret: (text: string) => boolean = readsMasked): Json => {
    if (typeof value === "string") return isSecret(value) ? reference(path) : value
    if (Array.isArray(value)) return value.map((element: Json, index) => hide(element, [...path, index], isSecret))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, hide(inner, [...path, name], isSecret)])
    )
  }
  return { hide, names: used as ReadonlySet<string> }
}

/** A variable, and its place in an entry. */
export interface Reference {
  readonly name: string
  readonly path: Path
}

/** The result of resolving a file's references. */
export interface Resolved {
  readonly value: Json
  /** Variables that are set, and the places of their values. */
  readonly read: ReadonlyArray<Reference>
  /** Variables that are not set, but whose secrets the gateway already has: these stay unchanged. */
  readonly kept: ReadonlyArray<string>
  /** Variables that are not set, and whose secrets the gateway does not have. */
  readonly missing: ReadonlyArray<Reference>
}

/**
 * Replaces references by the values of their variables. If a variable is not set, it inserts the mask from `current`, by
 * which the gateway keeps its secret.
 */
export const resolve = (value: Json, current: Json | undefined, environment: NodeJS.ProcessEnv): Resolved => {
  const kept: Array<string> = []
  const read: Array<Reference> = []
  const missing: Array<Reference> = []
  const walk = (value: Json, current: Json | undefined, path: Path): Json => {
    const name = referenceTo(value)
    if (name !== null) {
      const set = environment[name]
      if (set !== undefined && set !== "") {
        read.push({ name, path })
        return set
      }
      if (typeof current === "string") {
        kept.push(name)
        return current
      }
      missing.push({ name, path })
      return ""
    }
    if (Array.isArray(value)) {
      return value.map((element: Json, index) =>
        walk(element, Array.isArray(current) ? current[index] : undefined, [...path, index])
      )
    }
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        name,
        walk(inner, isObject(current) ? current[name] : undefined, [...path, name])
      ])
    )
  }
  return { value: walk(value, current, []), read, kept, missing }
}

/**
 * Whether the gateway already has the wanted value. Members that are not wanted are not compared. A secret is compared by its mask,
 * because the gateway shows only that.
 */
export const covers = (current: Json | undefined, wanted: Json): boolean => {
  if (typeof wanted === "string") {
    if (current === wanted) return true
    return typeof current === "string" && isMaskOf(current, wanted)
  }
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(current) &&
      current.length === wanted.length &&
      wanted.every((one: Json, at) => covers(current[at], one))
    )
  }
  if (isExactNumber(wanted)) return isExactNumber(current) && areEqualNumbers(current, wanted)
  if (!isObject(wanted)) return current === wanted || (wanted === null && current === undefined)
  // `{}` matches any object: it requires none of its members.
  return isObject(current) && Object.entries(wanted).every(([name, inner]) => covers(current[name], inner))
}
