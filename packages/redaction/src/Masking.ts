import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { Result } from "effect"
import type { Schema } from "effect"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { outboundAuthTypes } from "@tidegate/outbound-auth/OutboundAuth"

const hmac = ["header_key", "algorithm", "encoding", "prefix", "timestamp_header", "tolerance_seconds"]
/** What providers that sign are told and is no secret. A test holds these names against their table. */
const ofProviders = ["public_key", "webhook_id", "topic_arn"]

/**
 * The settings that may be read back, by inbound and outbound `auth_type`. Everything else is masked: it fails closed,
 * because a setting that is missing here is then unreadable, where one missing from a list of secrets would leak.
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

/** `****` and the last four characters; of fewer than eight only `****`, because four would be half of the secret. */
export const maskSecret = (secret: string): string => {
  const characters = Array.from(secret)
  return characters.length < 8 ? mark : mark + characters.slice(-4).join("")
}

/** Anything a mask could be, or could have been cut to. */
export const looksMasked = /^\*{4}[^]{0,4}$/u

/** The mask of a value that is not readable. Numbers show nothing; what is null or a flag is no secret. */
const maskLeaf = (value: string | number | boolean | null): string | boolean | null => {
  if (typeof value === "string") return maskSecret(value)
  return isJsonNumber(value) ? mark : value
}

const isArray = (value: Schema.Json | undefined): value is ReadonlyArray<Schema.Json> => Array.isArray(value)
const isRecord = (value: Schema.Json | undefined): value is { readonly [name: string]: Schema.Json } =>
  isJsonObject(value) && !isArray(value)

/** A value is judged by the nearest name above it, at any depth: array elements by the name of their array. */
const maskAt = (names: ReadonlySet<string>, name: string, value: Schema.Json): Schema.Json => {
  if (isArray(value)) return value.map((element) => maskAt(names, name, element))
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, maskAt(names, name, inner)]))
  }
  return names.has(name) ? value : maskLeaf(value)
}

/**
 * The settings of `auth_type` as a read shows them: all names, readable values, masked secrets. Of an `auth_type` it
 * does not know, every value is masked.
 */
export const maskAuth = (authType: unknown, auth: Schema.Json): Schema.Json => maskAt(readableOf(authType), "", auth)

const textsAt = (names: ReadonlySet<string>, name: string, value: Schema.Json): ReadonlyArray<string> => {
  if (isArray(value)) return value.flatMap((element) => textsAt(names, name, element))
  if (isRecord(value)) return Object.entries(value).flatMap(([name, inner]) => textsAt(names, name, inner))
  return typeof value === "string" && !names.has(name) ? [value] : []
}

/** The texts of `auth` that a read masks. */
export const secretsIn = (authType: unknown, auth: Schema.Json): ReadonlyArray<string> =>
  textsAt(readableOf(authType), "", auth)

/** Whether a written `auth` leaves a secret to what is stored: a mask stands for it. */
export const hasMasks = (authType: unknown, auth: Schema.Json): boolean =>
  secretsIn(authType, auth).some((text) => looksMasked.test(text))

/**
 * Puts the stored secrets back where a written `auth` repeats their masks, so that a record can be read, changed and
 * written back without knowing its secrets. Do this before the settings are validated.
 *
 * A mask that is not the one of the stored value in the same place is a field error and never taken for a secret. So
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
