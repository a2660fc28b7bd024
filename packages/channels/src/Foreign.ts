import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"

/** Reads members of JSON that a provider sent. A value of an unexpected type counts as absent. */
export type Foreign = { readonly [name: PropertyKey]: unknown }

export const none: Foreign = {}

/** The value at the end of a path of members. */
export const memberOf = (value: unknown, ...path: ReadonlyArray<string>): unknown => {
  let at: unknown = value
  for (const name of path) {
    if (!isJsonObject(at) || !Object.hasOwn(at, name)) return undefined
    at = at[name]
  }
  return at
}

export const objectOf = (value: unknown, ...path: ReadonlyArray<string>): Foreign => {
  const found = memberOf(value, ...path)
  return isJsonObject(found) ? found : none
}

export const listOf = (value: unknown, ...path: ReadonlyArray<string>): ReadonlyArray<unknown> => {
  const found = memberOf(value, ...path)
  return Array.isArray(found) ? found : []
}

/** A text that is not empty, or the digits of a number. */
export const textOf = (value: unknown, ...path: ReadonlyArray<string>): string | null => {
  const found = memberOf(value, ...path)
  return typeof found === "string" && found !== "" ? found : isJsonNumber(found) ? String(found) : null
}

/** A time as Unix ms; null: it is none. */
export const timeOf = (text: string | null): number | null => {
  const at = Date.parse(text ?? "")
  return Number.isNaN(at) ? null : at
}
