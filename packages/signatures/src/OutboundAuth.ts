import { Predicate, Result, Schema } from "effect"
import { isGateways, setByClient } from "@tidegate/model/HeaderRules"
import { decodeAuth, fieldError, HeaderName, HeaderSecret } from "./AuthSettings.ts"
import type { FieldErrors } from "./AuthSettings.ts"

/** What the gateway sets itself, or what belongs to one hop of the connection: never an operator's to set. */
const isReserved = (name: string): boolean => setByClient.has(name.toLowerCase()) || isGateways(name.toLowerCase())

const OutboundHeaderName = HeaderName.check(
  Schema.makeFilter((name: string) => !isReserved(name) || "must not be a header that the gateway or HTTP itself sets")
)

// Narrower than HTTP allows: beyond ASCII, the bytes on the wire would not be those of the text that was written.
const OutboundHeaderValue = HeaderSecret.check(
  Schema.isPattern(/^[\x20-\x7e]*$/, { message: "must be printable ASCII" })
)

const disabled = Schema.optionalKey(Schema.Boolean.annotate({ message: "must be true or false" }))

const headerAliases = { header_value: "value" }

const NoSettings = Schema.Struct({ disabled })
const CustomHeader = Schema.Struct({ header_name: OutboundHeaderName, value: OutboundHeaderValue, disabled })
/** What is disabled need not be complete, but what is there must be right: the flag can go at any time. */
const DisabledCustomHeader = Schema.Struct({
  header_name: Schema.optionalKey(OutboundHeaderName),
  value: Schema.optionalKey(OutboundHeaderValue),
  disabled: Schema.Literal(true)
})

/** How the deliveries to a destination authenticate, in canonical names. `disabled: true` switches it off. */
export type OutboundAuth =
  | { readonly auth_type: null | "NO_AUTH" | "SERVICE_SIGNATURE"; readonly auth: typeof NoSettings.Type }
  | {
      readonly auth_type: "CUSTOM_HEADER"
      readonly auth: typeof CustomHeader.Type | typeof DisabledCustomHeader.Type
    }

const notBuilt: ReadonlySet<unknown> = new Set([
  "OAUTH2_CLIENT_CREDENTIALS",
  "OAUTH2_AUTHORIZATION_CODE",
  "SERVICE_ACCOUNT",
  "OAUTH_REFRESH_TOKEN",
  "EMAIL_API_KEY",
  "CHAT_BOT_TOKEN",
  "OBJECT_STORE_R_ACCESS_KEY",
  "OBJECT_STORE_S_ACCESS_KEY",
  "MESSAGING_AUTH_TOKEN",
  "DATABASE_PASSWORD"
])

const decodeCustomHeader = (
  auth: unknown
): Result.Result<typeof CustomHeader.Type | typeof DisabledCustomHeader.Type, FieldErrors> =>
  Predicate.hasProperty(auth, "disabled") && auth.disabled === true
    ? decodeAuth(DisabledCustomHeader, headerAliases, auth)
    : decodeAuth(CustomHeader, headerAliases, auth)

/**
 * Checks the `config.auth_type` and `config.auth` of a written destination. Masked secrets must have been restored
 * before. Without an `auth_type`, settings are an error and not ignored: their writer believes that they are sent.
 */
export const validateOutboundAuth = (authType: unknown, auth: unknown): Result.Result<OutboundAuth, FieldErrors> => {
  switch (authType) {
    case undefined:
      return Object.keys(auth ?? {}).some((name) => name !== "disabled")
        ? fieldError("config.auth_type", "is required when config.auth is given")
        : validateOutboundAuth(null, auth)
    case null:
    case "NO_AUTH":
    case "SERVICE_SIGNATURE":
      return Result.map(decodeAuth(NoSettings, {}, auth), (auth) => ({ auth_type: authType, auth }))
    case "CUSTOM_HEADER":
      return Result.map(decodeCustomHeader(auth), (auth) => ({ auth_type: authType, auth }))
    default:
      return fieldError(
        "config.auth_type",
        notBuilt.has(authType)
          ? `${String(authType)} is not built yet`
          : "must be one of NO_AUTH, SERVICE_SIGNATURE, CUSTOM_HEADER or null"
      )
  }
}

export interface DeliveryAuth {
  /** Headers that every delivery carries, by lower-cased name. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether deliveries are signed with the team's signing secret. */
  readonly signs: boolean
}

const none: DeliveryAuth = { headers: {}, signs: false }

/**
 * What a destination's deliveries carry, prepared once per change of its settings. Settings read back from storage go
 * through `validateOutboundAuth` first: where they could not be decrypted, the attempt fails instead of going out bare.
 */
export const compileOutboundAuth = (destination: OutboundAuth): DeliveryAuth => {
  if (destination.auth_type === "CUSTOM_HEADER") {
    const { auth } = destination
    return auth.disabled === true ? none : { headers: { [auth.header_name.toLowerCase()]: auth.value }, signs: false }
  }
  return destination.auth_type === "SERVICE_SIGNATURE" && destination.auth.disabled !== true
    ? { headers: {}, signs: true }
    : none
}
