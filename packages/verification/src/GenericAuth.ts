import { Effect, Result, Schema } from "effect"
import {
  decodeAuth,
  fieldError,
  HeaderName,
  HeaderSecret,
  Identifier,
  OneOf,
  Secret,
  TextSecret
} from "@tidegate/model/AuthSettings"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { basicCheck, keyCheck } from "./Credentials.ts"
import type { Check } from "./Provider.ts"
import { type OwnNames, unknownSettings, unlessRefused } from "@tidegate/model/SettingNames"
import { algorithms, compileScheme, encodings, type SignatureScheme } from "./SignatureScheme.ts"

const BasicAuth = Schema.Struct({
  username: Identifier.check(
    Schema.makeFilter((value: string) => !value.includes(":") || "must not contain a colon (it ends the user name)")
  ),
  password: TextSecret
})

const ApiKey = Schema.Struct({
  header_key: Schema.optionalKey(HeaderName),
  query_key: Schema.optionalKey(Identifier),
  api_key: HeaderSecret
})

const defaultTolerance = 300

const toleranceMessage = { message: "must be a whole number of seconds from 1 to 86400" }
const Tolerance = Schema.Number.annotate(toleranceMessage).check(
  Schema.isInt(toleranceMessage),
  Schema.isBetween({ minimum: 1, maximum: 86_400 }, toleranceMessage)
)

const Hmac = Schema.Struct({
  webhook_secret_key: Secret,
  header_key: HeaderName.pipe(Schema.withDecodingDefaultKey(Effect.succeed("x-signature"))),
  algorithm: OneOf(algorithms).pipe(Schema.withDecodingDefaultKey(Effect.succeed("sha256" as const))),
  encoding: OneOf(encodings).pipe(Schema.withDecodingDefaultKey(Effect.succeed("hex" as const))),
  prefix: Schema.optionalKey(
    Schema.String.annotate({ message: "must be a string" }).check(
      Schema.isPattern(/^(?:[\x21-\x7e][\x20-\x7e]{0,63})?$/, {
        message: "must be at most 64 printable ASCII characters and not begin with a space"
      })
    )
  ),
  timestamp_header: Schema.optionalKey(HeaderName),
  tolerance_seconds: Schema.optionalKey(Tolerance)
})

const hmacAliases = {
  secret: "webhook_secret_key",
  signature_header: "header_key",
  header_name: "header_key"
}

const apiKeyAliases = { header_name: "header_key" }

const namesOf = (schema: { readonly fields: object }, aliases: Readonly<Record<string, string>>): OwnNames => ({
  names: Object.keys(schema.fields),
  aliases: Object.keys(aliases)
})

const ownNames = {
  BASIC_AUTH: namesOf(BasicAuth, {}),
  API_KEY: namesOf(ApiKey, apiKeyAliases),
  HMAC: namesOf(Hmac, hmacAliases)
}

/** Names of the settings of each scheme. */
export const genericNames: ReadonlyArray<OwnNames> = Object.values(ownNames)

/** The schemes that are configured by a source's own settings. Canonical names, with every default filled in. */
export type GenericAuth =
  | { readonly auth_type: "BASIC_AUTH"; readonly auth: typeof BasicAuth.Type }
  | { readonly auth_type: "API_KEY"; readonly auth: typeof ApiKey.Type }
  | { readonly auth_type: "HMAC"; readonly auth: typeof Hmac.Type }

const validateHmac = (written: unknown): Result.Result<typeof Hmac.Type, FieldErrors> =>
  Result.flatMap(decodeAuth(Hmac, hmacAliases, written), ({ prefix, ...auth }) => {
    const settings = prefix === undefined || prefix === "" ? auth : { ...auth, prefix }
    const { header_key, timestamp_header, tolerance_seconds } = settings
    if (timestamp_header === undefined) {
      // Fails closed, because a tolerance alone looks like replay protection and is none.
      return tolerance_seconds === undefined
        ? Result.succeed(settings)
        : fieldError("config.auth.tolerance_seconds", "needs timestamp_header")
    }
    if (timestamp_header.toLowerCase() === header_key.toLowerCase()) {
      return fieldError("config.auth.timestamp_header", "must not be the header of the signature")
    }
    return Result.succeed({ ...settings, tolerance_seconds: tolerance_seconds ?? defaultTolerance })
  })

const validateApiKey = (written: unknown): Result.Result<typeof ApiKey.Type, FieldErrors> =>
  Result.map(decodeAuth(ApiKey, apiKeyAliases, written), (auth) =>
    auth.header_key === undefined && auth.query_key === undefined ? { ...auth, header_key: "x-api-key" } : auth
  )

/** Validates settings by their `auth_type`; null if it is not a generic scheme. */
export const validateGenericAuth = (
  authType: unknown,
  auth: unknown
): Result.Result<GenericAuth, FieldErrors> | null => {
  if (authType !== "BASIC_AUTH" && authType !== "API_KEY" && authType !== "HMAC") return null
  return unlessRefused(unknownSettings(`auth_type ${authType}`, ownNames[authType], auth), validate(authType, auth))
}

const validate = (authType: GenericAuth["auth_type"], auth: unknown): Result.Result<GenericAuth, FieldErrors> => {
  switch (authType) {
    case "BASIC_AUTH":
      return Result.map(decodeAuth(BasicAuth, {}, auth), (auth) => ({ auth_type: authType, auth }))
    case "API_KEY":
      return Result.map(validateApiKey(auth), (auth) => ({ auth_type: authType, auth }))
    default:
      return Result.map(validateHmac(auth), (auth) => ({ auth_type: authType, auth }))
  }
}

/** Builds the signature scheme of HMAC settings. */
export const hmacScheme = (auth: Omit<typeof Hmac.Type, "webhook_secret_key">): SignatureScheme => {
  const { timestamp_header, tolerance_seconds = defaultTolerance } = auth
  const hasTimestamp = timestamp_header !== undefined
  return {
    header: auth.header_key.toLowerCase(),
    separator: null,
    prefix: auth.prefix ?? "",
    algorithm: auth.algorithm,
    encoding: auth.encoding,
    content: hasTimestamp ? "{timestamp}.{body}" : "{body}",
    timestamp: hasTimestamp
      ? { from: { header: timestamp_header.toLowerCase() }, unit: "seconds", toleranceSeconds: tolerance_seconds }
      : null,
    secret: "utf8"
  }
}

/** Prepares the check of a request. Null when the settings yield no usable key. */
export const compileGenericAuth = (generic: GenericAuth): Check | null => {
  switch (generic.auth_type) {
    case "BASIC_AUTH":
      return basicCheck(generic.auth.username, generic.auth.password)
    case "API_KEY": {
      const { api_key, header_key, query_key } = generic.auth
      return keyCheck(api_key, { header: header_key, query: query_key })
    }
    default:
      return compileScheme(hmacScheme(generic.auth), generic.auth.webhook_secret_key)
  }
}
