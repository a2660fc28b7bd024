import { Predicate } from "effect"
import { hash, timingSafeEqual } from "node:crypto"
import type { Age } from "../Provider.ts"
import type { Headers } from "../SignatureScheme.ts"

/** A header that occurs once and is not empty. Several values are refused: which one was signed is a guess. */
export const singleHeader = (headers: Headers, name: string): string | null => {
  const value = headers[name]
  return typeof value === "string" && value !== "" ? value : null
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The body as text, null when it is not UTF-8: a reading that replaces bytes is not what was sent. */
const bodyText = (body: Uint8Array): string | null => {
  try {
    return utf8.decode(body)
  } catch {
    return null
  }
}

export type JsonObject = { readonly [name: PropertyKey]: unknown }

export const isJsonObject = (value: unknown): value is JsonObject =>
  Predicate.isReadonlyObject(value) && !Array.isArray(value)

/** The body as a JSON object, null when it is none. */
export const jsonBody = (body: Uint8Array): JsonObject | null => {
  const text = bodyText(body)
  if (text === null) return null
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** The value of a query parameter that occurs once and is not empty. */
export const singleParameter = (query: string, name: string): string | null => {
  const [value, ...others] = new URLSearchParams(query).getAll(name)
  return value === undefined || value === "" || others.length > 0 ? null : value
}

/** Compares digests of equal length, so that the time tells neither where two texts differ nor how long they are. */
export const sameText = (presented: string, expected: string): boolean =>
  // A lone surrogate has no UTF-8 bytes: it would be hashed as another character.
  presented.isWellFormed() && timingSafeEqual(hash("sha256", presented, "buffer"), hash("sha256", expected, "buffer"))

/** The bytes of a text in their one base64 form: no other alphabet, no missing padding, no loose trailing bits. */
export const base64Bytes = (text: string, form: "base64" | "base64url" = "base64"): Buffer | null => {
  const bytes = Buffer.from(text, form)
  return bytes.length > 0 && bytes.toString(form) === text ? bytes : null
}

/** Unix seconds in digits only, so that one instant has one spelling. */
export const unixSeconds = (text: string): number | null => (/^\d{1,15}$/.test(text) ? Number(text) : null)

/** Not so when `seconds` is not a number. */
export const isOfAge = ({ ahead, past }: Age, seconds: number, nowSeconds: number): boolean =>
  seconds >= nowSeconds - past && seconds <= nowSeconds + ahead
