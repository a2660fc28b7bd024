import { parseJson } from "@tidegate/json/JsonText"
import { Predicate } from "effect"
import { isUtf8 } from "node:buffer"
import { hash, timingSafeEqual } from "node:crypto"
import type { Age } from "../Provider.ts"
import type { Headers } from "../SignatureScheme.ts"

/** A header that occurs once and is not empty. Several values are refused: it is unknown which one was signed. */
export const singleHeader = (headers: Headers, name: string): string | null => {
  const value = headers[name]
  return typeof value === "string" && value !== "" ? value : null
}

export type JsonObject = { readonly [name: PropertyKey]: unknown }

export const isJsonObject = (value: unknown): value is JsonObject =>
  Predicate.isReadonlyObject(value) && !Array.isArray(value)

/** The body as a JSON object; null if it is none, or costs too much to parse. */
export const jsonBody = (body: Uint8Array): JsonObject | null => {
  if (!isUtf8(body)) return null
  const parsed = parseJson(body)
  return parsed.kind === "json" && isJsonObject(parsed.value) ? parsed.value : null
}

/** The value of a query parameter that occurs once and is not empty. */
export const singleParameter = (query: string, name: string): string | null => {
  const [value, ...others] = new URLSearchParams(query).getAll(name)
  return value === undefined || value === "" || others.length > 0 ? null : value
}

/** Compares digests of equal length, so that the time reveals neither where two texts differ nor how long they are. */
export const sameText = (presented: string, expected: string): boolean =>
  // A lone surrogate has no UTF-8 form: it would be hashed as another character.
  presented.isWellFormed() && timingSafeEqual(hash("sha256", presented, "buffer"), hash("sha256", expected, "buffer"))

/** The bytes of a text in strict base64: no other alphabet, no missing padding, no loose trailing bits. Null for anything else. */
export const base64Bytes = (text: string, form: "base64" | "base64url" = "base64"): Buffer | null => {
  const bytes = Buffer.from(text, form)
  return bytes.length > 0 && bytes.toString(form) === text ? bytes : null
}

/** Unix seconds in digits only, so that each instant has one spelling. */
export const unixSeconds = (text: string): number | null => (/^\d{1,15}$/.test(text) ? Number(text) : null)

/** False if `seconds` is NaN. */
export const isOfAge = ({ ahead, past }: Age, seconds: number, nowSeconds: number): boolean =>
  seconds >= nowSeconds - past && seconds <= nowSeconds + ahead
