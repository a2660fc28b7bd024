import { Result, Schema } from "effect"
import type { Source } from "@tidegate/model/Source"
import { restoreMasked } from "@tidegate/redaction/Masking"
import { providerFor, providerOf } from "@tidegate/verification/Providers"
import { resolveAuthType, validateSourceAuth } from "@tidegate/verification/SourceAuth"
import { type FieldErrors, fieldError } from "./Input.ts"

/** The `auth` members of a `config` before validation: their valid form depends on the `auth_type`. */
export const authMembers = {
  auth_type: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ message: "must be a string or null" })),
  auth: Schema.optionalKey(Schema.NullOr(Schema.JsonObject).annotate({ message: "must be an object" }))
}

interface Written {
  readonly auth_type?: string | null
  readonly auth?: Schema.JsonObject | null
}

interface Auth<Type> {
  readonly auth_type: Type
  readonly auth: Schema.JsonObject
}

/** The result of a partial change of stored settings. */
type Changed<Type> = Auth<Type> | (Omit<Auth<Type>, "auth"> & { readonly auth: "unchanged" })

type Validate<Type> = (authType: unknown, auth: unknown) => Result.Result<Auth<Type>, FieldErrors>

/**
 * Checks written settings with `validate`. Masks are replaced by the stored secrets that they stand for, but only under the same
 * `auth_type`: a secret must not become a setting of another meaning.
 */
export const checkAuth = <Type extends string | null>(
  written: Written,
  stored: Auth<string | null>,
  validate: Validate<Type>
): Result.Result<Auth<Type>, FieldErrors> => {
  const { auth, auth_type } = written
  if (auth === undefined || auth === null || auth_type === undefined || auth_type === null) {
    return validate(auth_type, auth ?? {})
  }
  const secrets = stored.auth_type === auth_type ? stored.auth : {}
  return Result.flatMap(restoreMasked(auth_type, auth, secrets), (restored) => validate(auth_type, restored))
}

/**
 * The same for a partial change. Settings are replaced as a whole. Without settings, an `auth_type` that equals the stored one
 * changes nothing, and another one is incomplete.
 */
export const changeAuth = <Type extends string | null>(
  written: Written,
  stored: Auth<Type>,
  validate: Validate<Type>
): Result.Result<Changed<Type>, FieldErrors> => {
  const { auth, auth_type } = written
  if (auth === undefined && (auth_type === undefined || auth_type === stored.auth_type)) {
    return Result.succeed({ auth_type: stored.auth_type, auth: "unchanged" })
  }
  const type = auth_type === undefined ? (stored.auth_type ?? undefined) : auth_type
  return checkAuth({ ...written, ...(type === undefined ? {} : { auth_type: type }) }, stored, validate)
}

/** Completes `written` with its implied `auth_type`, on a source of `type`. */
const resolved = (type: string, { auth, auth_type }: Written): Written => {
  const authType = resolveAuthType(type, auth_type, auth)
  return {
    ...(auth === undefined ? {} : { auth }),
    ...(typeof authType === "string" || authType === null ? { auth_type: authType } : {})
  }
}

type SourceAuthType = Source["config"]["auth_type"]

const validateFor =
  (type: string): Validate<SourceAuthType> =>
  (authType, auth) =>
    Result.map(validateSourceAuth(type, authType, auth), ({ auth, auth_type }) => ({ auth_type, auth: { ...auth } }))

/** Checks the settings of a new source of `type`. A provider that needs no settings is verified without any. */
export const checkSourceAuth = (type: string, written: Written): Result.Result<Auth<SourceAuthType>, FieldErrors> =>
  checkAuth(resolved(type, { auth: {}, ...written }), { auth_type: null, auth: {} }, validateFor(type))

/**
 * Checks the settings of a partial change, after which the source has `type`. When the type changes, stored settings that are not
 * written again have to be valid for the new one: settings of one provider are not those of another kind of verification, even
 * with the same names.
 */
export const changeSourceAuth = (
  type: string,
  written: Written,
  stored: Auth<SourceAuthType> & { readonly type: string }
): Result.Result<Changed<SourceAuthType>, FieldErrors> => {
  const validate = validateFor(type)
  const isSameType = type === stored.type
  // Settings without an auth_type belong to the stored one, unless there is none, or the new type has one of its own.
  const isSettingsAlone = written.auth_type === undefined && stored.auth_type !== null
  const isOfStored = isSettingsAlone && (isSameType || providerOf(type) === undefined)
  const next = isOfStored ? written : resolved(type, written)
  const isKept = next.auth === undefined && (next.auth_type === undefined || next.auth_type === stored.auth_type)
  if (isSameType || !isKept || stored.auth_type === null) return changeAuth(next, stored, validate)

  const wasOfProvider = providerFor(stored.type, stored.auth_type) !== undefined
  if (wasOfProvider && providerOf(type) !== undefined && providerFor(type, stored.auth_type) === undefined) {
    return fieldError("config.auth", `is required: the settings of ${stored.type} are not those of ${type}`)
  }
  return validate(stored.auth_type, stored.auth)
}
