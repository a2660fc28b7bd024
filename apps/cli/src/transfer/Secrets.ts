import { areEqualNumbers, isExactNumber } from "@tidegate/json/ExactNumber"
import { looksMasked, maskSecret } from "@tidegate/redaction/Masking"
import { isObject, type Json, type JsonObject, type Path } from "./Yaml.ts"

/*
 * Secrets are never in the file. What is one stands there as `{$env: NAME}`, the name of the variable that has it.
 */

export const referenceTo = (value: Json): string | null => {
  const name = isObject(value) ? value["$env"] : undefined
  return typeof name === "string" && Object.keys(value as JsonObject).length === 1 ? name : null
}

/** A URL of which the end is a secret: it reads `https://chat.example/hooks/****abcd`. */
const maskedUrl = /^(https?:\/\/[^*]*)(\*{4}[^]{0,4})$/u

const readsMasked = (text: string): boolean => looksMasked.test(text) || maskedUrl.test(text)

/** Whether a text reads like this once it is masked. */
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

/** Puts references in the place of secrets; no two of a file have the same name. */
export const referrer = () => {
  const used = new Set<string>()
  const reference = (path: Path): Json => {
    const name = named(path)
    let free = name
    for (let n = 2; used.has(free); n++) free = `${name}_${n}`
    used.add(free)
    return { $env: free }
  }
  /** `isSecret`: of the texts in there; what reads masked is one. */
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

/** A variable, and where in an entry it is named. */
export interface Reference {
  readonly name: string
  readonly path: Path
}

/** What became of the references of a file. */
export interface Resolved {
  readonly value: Json
  /** Variables that are set, and where their values go. */
  readonly read: ReadonlyArray<Reference>
  /** Variables that are not set, of secrets that the gateway has already: these stay as they are. */
  readonly kept: ReadonlyArray<string>
  /** Variables that are not set, of secrets that nobody has. */
  readonly missing: ReadonlyArray<Reference>
}

/**
 * Puts the values of variables in the place of references. Of a variable that is not set, what `current` reads there: a mask,
 * by which the gateway keeps what it has.
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
 * Whether the gateway has what is wanted. What is not mentioned is not looked at, and a secret is compared by its mask:
 * the gateway shows no more of it.
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
  // `{}` is wanted where there is an object: it asks for nothing in there.
  return isObject(current) && Object.entries(wanted).every(([name, inner]) => covers(current[name], inner))
}
