import { Predicate, Result, Schema } from "effect"
import { decodeAuth, fieldError } from "@tidegate/model/AuthSettings"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { awsSigV4 } from "./types/AwsSigV4.ts"
import { azureSasKey } from "./types/AzureSasKey.ts"
import { apiKeyQuery } from "./types/ApiKeyQuery.ts"
import { chatBotToken, emailApiKey, messagingAuthToken } from "./types/ApiCredentials.ts"
import { databasePassword } from "./types/DatabasePassword.ts"
import { customHeader } from "./types/CustomHeader.ts"
import { natsNkey, natsToken } from "./types/NatsCredentials.ts"
import { httpMessageSignature } from "./types/HttpMessageSignature.ts"
import { noAuth } from "./types/NoAuth.ts"
import { tokenAuthTypes } from "./types/OAuth.ts"
import { awsAccessKey, objectStoreRKey, objectStoreSKey } from "./types/AccessKeys.ts"
import { carrying, type DeliveryAuth, nothing, type OutboundAuthType } from "./types/OutboundAuthType.ts"
import { serviceSignature } from "./types/ServiceSignature.ts"
import { signedJwt } from "./types/SignedJwt.ts"
import { unknownSettings, unlessRefused } from "@tidegate/model/SettingNames"

export type { DeliveryAuth, OutboundAuthType }
export { carrying }

/** Every kind of authentication for deliveries. */
export const outboundAuthTypes: ReadonlyArray<OutboundAuthType> = [
  noAuth,
  serviceSignature,
  customHeader,
  apiKeyQuery,
  httpMessageSignature,
  signedJwt,
  awsSigV4,
  emailApiKey,
  chatBotToken,
  messagingAuthToken,
  objectStoreRKey,
  objectStoreSKey,
  awsAccessKey,
  azureSasKey,
  databasePassword,
  natsToken,
  natsNkey,
  ...tokenAuthTypes
]

const byType: ReadonlyMap<unknown, OutboundAuthType> = new Map(outboundAuthTypes.map((row) => [row.type, row]))

/** The row of an `auth_type`; undefined if there is none. */
export const outboundAuthOf = (authType: unknown): OutboundAuthType | undefined =>
  authType === null ? noAuth : byType.get(authType)

/** How the deliveries to a destination authenticate, in canonical names. `disabled: true` turns authentication off. */
export interface OutboundAuth {
  readonly auth_type: string | null
  readonly auth: Schema.JsonObject
}

const Disabled = Schema.Boolean.annotate({ message: "must be true or false" })

/**
 * The schemas of a row's `auth`: the complete one, and the disabled one, which may be incomplete. Given values must be valid even when disabled,
 * because the flag can be removed later.
 */
const schemasOf = ({ settings }: OutboundAuthType) => ({
  complete: Schema.Struct({ ...settings, disabled: Schema.optionalKey(Disabled) }),
  disabled: Schema.Struct({
    ...Object.fromEntries(Object.entries(settings).map(([name, schema]) => [name, Schema.optionalKey(schema)])),
    disabled: Schema.Literal(true)
  })
})

const schemas = new Map(outboundAuthTypes.map((row) => [row, schemasOf(row)]))

const everyType: ReadonlyArray<string> = outboundAuthTypes.map(({ type }) => type)

/** Why an `auth_type` is not allowed; null if it is. Null means NO_AUTH. */
export const authTypeFault = (authType: unknown, allowed: ReadonlyArray<string>): string | null => {
  const row = outboundAuthOf(authType)
  return row !== undefined && allowed.includes(row.type)
    ? null
    : `must be one of ${allowed.join(", ")}${allowed.includes(noAuth.type) ? " or null" : ""}`
}

/**
 * Validates the `config.auth_type` and `config.auth` of a written destination, whose type supports `allowed`. Masked secrets must have
 * been restored before. Settings without an `auth_type` are refused, not ignored, because their author believes that they are
 * sent.
 */
export const validateOutboundAuth = (
  authType: unknown,
  auth: unknown,
  allowed: ReadonlyArray<string> = everyType
): Result.Result<OutboundAuth, FieldErrors> => {
  if (authType === undefined) {
    return Object.keys(auth ?? {}).some((name) => name !== "disabled")
      ? fieldError("config.auth_type", "is required when config.auth is given")
      : validateOutboundAuth(null, auth, allowed)
  }
  const row = outboundAuthOf(authType)
  const fault = authTypeFault(authType, allowed)
  if (row === undefined || fault !== null) return fieldError("config.auth_type", fault ?? "")
  const { complete, disabled } = schemas.get(row)!
  const isDisabled = Predicate.hasProperty(auth, "disabled") && auth.disabled === true
  const schema = (isDisabled ? disabled : complete) as Schema.ConstraintDecoder<Schema.JsonObject>
  const { aliases, check = () => [], expand = Result.succeed } = row
  const expanded = Predicate.isObject(auth) ? expand(auth as Schema.JsonObject) : Result.succeed(auth)
  return Result.flatMap(
    Result.flatMap(expanded, (auth) => decodeAuth(schema, aliases, auth)),
    (auth): Result.Result<OutboundAuth, FieldErrors> => {
      const faults = isDisabled ? [] : check(auth as never)
      return faults.length === 0
        ? Result.succeed({ auth_type: authType === null ? null : row.type, auth })
        : Result.fail(faults)
    }
  )
}

/**
 * The same for newly written settings. Misspelt names are refused: `diabled` would leave the authentication on. Stored settings are
 * not checked for that, because a newer version may have written more.
 */
export const validateWrittenOutboundAuth = (
  authType: unknown,
  auth: unknown,
  allowed: ReadonlyArray<string>
): Result.Result<OutboundAuth, FieldErrors> => {
  const validated = validateOutboundAuth(authType, auth, allowed)
  const row = authType === undefined ? undefined : outboundAuthOf(authType)
  if (row === undefined || !allowed.includes(row.type) || !Predicate.isObject(auth)) return validated
  const expanded = row.expand === undefined ? auth : Result.getOrElse(row.expand(auth as Schema.JsonObject), () => ({}))
  // With NO_AUTH the settings of any other type are accepted: an operator who turns authentication off may write back what a read returned.
  const rows = row === noAuth ? outboundAuthTypes : [row]
  const aliases = rows.flatMap(({ aliases, settings }) => Object.keys(settings).concat(Object.keys(aliases)))
  const own = { names: [...Object.keys(row.settings), "disabled"], aliases }
  return unlessRefused(unknownSettings(`auth_type ${row.type}`, own, expanded), validated)
}

/**
 * The authentication of a destination's deliveries. Stored settings go through `validateOutboundAuth` first: if they
 * could not be decrypted, the attempt fails instead of being sent without authentication.
 */
export const compileOutboundAuth = ({ auth, auth_type }: OutboundAuth): DeliveryAuth =>
  auth["disabled"] === true ? nothing : (outboundAuthOf(auth_type)?.compile(auth as never) ?? nothing)
