import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { Result } from "effect"
import type { Schema } from "effect"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { outboundAuthTypes } from "@tidegate/outbound-auth/OutboundAuth"

const hmac = ["header_key", "algorithm", "encoding", "prefix", "timestamp_header", "tolerance_seconds"]
/** Settings of providers that sign, but are not secret. A test compares these names with the provider table. */
const ofProviders = ["public_key", "webhook_id", "topic_arn"]

/**
 * The readable settings, by inbound and outbound `auth_type`. All others are masked. Fails closed, because a setting that is missing from
 * this list is only unreadable, while one missing from a list of secrets would leak.
 */
const readable: ReadonlyMap<unknown, ReadonlySet<string>> = new Map(
  [
    ["BASIC_AUTH", ["username"]] as const,
    ["API_KEY", ["header_key", "query_key"]] as const,
    ["HMAC", [...hmac, ...ofProviders]] as const,
    ...outboundAuthTypes.map(({ readable, type }) => [type, readable] as const)
  ].map(([type, names]) => [type, new Set(names)])
)

const noneReadable: ReadonlySet<string> = new Set()

const readableOf = (authType: unknown): ReadonlySet<string> => readable.get(authType) ?? noneReadable

const mark = "****"

/** `****` and the last four characters. A secret of fewer than eight characters becomes `****`, because four would be half of it. */
export const maskSecret = (secret: string): string => {
  const characters = Array.from(secret)
  return characters.length < 8 ? mark : mark + characters.slice(-4).join("")
}

/** Any text that may be a mask or the beginning of one. */
export const looksMasked = /^\*{4}[^]{0,4}$/u

/** The mask of a value that is not readable. Numbers are masked completely; null and booleans are no secrets. */
const maskLeaf = (value: string | number | boolean | null): string | boolean | null => {
  if (typeof value === "string") return maskSecret(value)
  return isJsonNumber(value) ? mark : value
}

const isArray = (value: Schema.Json | undefined): value is ReadonlyArray<Schema.Json> => Array.isArray(value)
const isRecord = (value: Schema.Json | undefined): value is { readonly [name: string]: Schema.Json } =>
  isJsonObject(value) && !isArray(value)

/** The nearest name above a value decides, at any depth; for array elements it is the name of their array. */
const maskAt = (names: ReadonlySet<string>, name: string, value: Schema.Json): Schema.Json => {
  if (isArray(value)) return value.map((element) => maskAt(names, name, element))
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, maskAt(names, name, inner)]))
  }
  return names.has(name) ? value : maskLeaf(value)
}

/** The settings of `auth_type` for a read: all names, readable values, masked secrets. If the `auth_type` is unknown, every value is masked. */
export const maskAuth = (authType: unknown, auth: Schema.Json): Schema.Json => maskAt(readableOf(authType), "", auth)

const textsAt = (names: ReadonlySet<string>, name: string, value: Schema.Json): ReadonlyArray<string> => {
  if (isArray(value)) return value.flatMap((element) => textsAt(names, name, element))
  if (isRecord(value)) return Object.entries(value).flatMap(([name, inner]) => textsAt(names, name, inner))
  return typeof value === "string" && !names.has(name) ? [value] : []
}

/** The texts of `auth` that are masked on read. */
export const secretsIn = (authType: unknown, auth: Schema.Json): ReadonlyArray<string> =>
  textsAt(readableOf(authType), "", auth)

/** Whether a written `auth` contains a mask instead of a secret, and so refers to the stored one. */
export const hasMasks = (authType: unknown, auth: Schema.Json): boolean =>
  secretsIn(authType, auth).some((text) => looksMasked.test(text))

/**
 * Restores the stored secrets where a written `auth` repeats their masks, so that a client can read, change and write back a record
 * without knowing its secrets. Call it before the settings are validated.
 *
 * A mask that differs from the mask of the stored value in the same place is a field error, and is never stored as a secret. So
 * a secret that itself looks like a mask (`****` and up to four characters) cannot be written.
 */
export const restoreMasked = (
  authType: unknown,
  written: Schema.Json,
  stored: Schema.Json
): Result.Result<Schema.Json, FieldErrors> => {
  const names = readableOf(authType)
  const errors: Array<FieldErrors[number]> = []

  const restore = (name: string, path: string, written: Schema.Json, stored: Schema.Json | undefined): Schema.Json => {
    if (isArray(written)) {
      return written.map((element, index) =>
        restore(name, `${path}.${index}`, element, isArray(stored) ? stored[index] : undefined)
      )
    }
    if (isRecord(written)) {
      return Object.fromEntries(
        Object.entries(written).map(([name, inner]) => {
          const old = isRecord(stored) ? stored[name] : undefined
          return [name, restore(name, `${path}.${name}`, inner, old)]
        })
      )
    }
    if (names.has(name) || typeof written !== "string" || !looksMasked.test(written)) return written
    if ((typeof stored === "string" || isJsonNumber(stored)) && maskLeaf(stored) === written) return stored
    errors.push({ path, message: "is masked and matches no stored secret: write the secret itself" })
    return written
  }

  const restored = restore("", "config.auth", written, stored)
  return errors.length === 0 ? Result.succeed(restored) : Result.fail(errors)
}
