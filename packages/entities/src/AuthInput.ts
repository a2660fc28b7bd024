import { Result, Schema } from "effect"
import { restoreMasked } from "@tidegate/signatures/Masking"
import type { FieldErrors } from "./Input.ts"

/** The `auth` members of a `config`, before they are judged: what they may hold depends on the `auth_type`. */
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

/**
 * Checks written settings with `validate`. Masks are taken back for the secrets they stand for: for those stored under
 * the same `auth_type`, because a secret must not turn up in a setting of another meaning.
 */
export const checkAuth = <Type extends string | null>(
  written: Written,
  stored: Auth<string | null>,
  validate: (authType: unknown, auth: unknown) => Result.Result<Auth<Type>, FieldErrors>
): Result.Result<Auth<Type>, FieldErrors> => {
  const { auth, auth_type } = written
  if (auth === undefined || auth === null || auth_type === undefined || auth_type === null) {
    return validate(auth_type, auth ?? {})
  }
  const secrets = stored.auth_type === auth_type ? stored.auth : {}
  return Result.flatMap(restoreMasked(auth_type, auth, secrets), (restored) => validate(auth_type, restored))
}

/**
 * The same for a change in part. Settings are replaced whole; without any, an `auth_type` that is the stored one
 * changes nothing, and another one is incomplete.
 */
export const changeAuth = <Type extends string | null>(
  written: Written,
  stored: Auth<Type>,
  validate: (authType: unknown, auth: unknown) => Result.Result<Auth<Type>, FieldErrors>
): Result.Result<Auth<Type> | (Omit<Auth<Type>, "auth"> & { readonly auth: "unchanged" }), FieldErrors> => {
  const { auth, auth_type } = written
  if (auth === undefined && (auth_type === undefined || auth_type === stored.auth_type)) {
    return Result.succeed({ auth_type: stored.auth_type, auth: "unchanged" })
  }
  const type = auth_type === undefined ? (stored.auth_type ?? undefined) : auth_type
  return checkAuth({ ...written, ...(type === undefined ? {} : { auth_type: type }) }, stored, validate)
}
