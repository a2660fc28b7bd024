import { hash, timingSafeEqual } from "node:crypto"
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
} from "./AuthSettings.ts"
import type { FieldErrors } from "./AuthSettings.ts"
import { algorithms, compileScheme, encodings } from "./SignatureScheme.ts"
import type { Headers } from "./SignatureScheme.ts"

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

/**
 * How a source verifies its senders, in canonical names and with every default filled in: what is stored, and what a
 * read shows (masked). `auth_type` null accepts everybody.
 */
export type SourceAuth =
  | { readonly auth_type: null; readonly auth: Readonly<Record<string, never>> }
  | { readonly auth_type: "BASIC_AUTH"; readonly auth: typeof BasicAuth.Type }
  | { readonly auth_type: "API_KEY"; readonly auth: typeof ApiKey.Type }
  | { readonly auth_type: "HMAC"; readonly auth: typeof Hmac.Type }

const validateHmac = (written: unknown): Result.Result<typeof Hmac.Type, FieldErrors> =>
  Result.flatMap(decodeAuth(Hmac, hmacAliases, written), ({ prefix, ...auth }) => {
    const settings = prefix === undefined || prefix === "" ? auth : { ...auth, prefix }
    const { header_key, timestamp_header, tolerance_seconds } = settings
    if (timestamp_header === undefined) {
      // Fails closed, because a tolerance alone looks like a protection against replays and is none.
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
  Result.map(decodeAuth(ApiKey, { header_name: "header_key" }, written), (auth) =>
    auth.header_key === undefined && auth.query_key === undefined ? { ...auth, header_key: "x-api-key" } : auth
  )

/**
 * Checks the `config.auth_type` and `config.auth` of a written source. Masked secrets must have been restored before.
 * Without an `auth_type`, settings are an error and not ignored: their writer believes that verification is on.
 * With an explicit null they are dropped: that is how verification is turned off.
 */
export const validateSourceAuth = (authType: unknown, auth: unknown): Result.Result<SourceAuth, FieldErrors> => {
  switch (authType) {
    case undefined:
    case null:
      return authType === undefined && Object.keys(auth ?? {}).length > 0
        ? fieldError("config.auth_type", "is required when config.auth is given")
        : Result.succeed({ auth_type: null, auth: {} })
    case "BASIC_AUTH":
      return Result.map(decodeAuth(BasicAuth, {}, auth), (auth) => ({ auth_type: authType, auth }))
    case "API_KEY":
      return Result.map(validateApiKey(auth), (auth) => ({ auth_type: authType, auth }))
    case "HMAC":
      return Result.map(validateHmac(auth), (auth) => ({ auth_type: authType, auth }))
    default:
      return fieldError("config.auth_type", "must be one of BASIC_AUTH, API_KEY, HMAC or null")
  }
}

/** What of a request its verification looks at. */
export interface InboundRequest {
  readonly headers: Headers
  /** The query string as it arrived, without `?`; empty when there is none. */
  readonly query: string
  /** The raw bytes, before any parsing. */
  readonly body: Uint8Array
  readonly nowSeconds: number
}

/** `unverified`: the source asks for no verification; the request is accepted and marked so. */
export type Verification = "verified" | "failed" | "unverified"

export interface SourceVerifier {
  /** Synchronous and total: it never throws, whatever the request holds. */
  readonly verify: (request: InboundRequest) => Verification
}

type Check = (request: InboundRequest) => boolean

/** Compares digests of equal length, so that the time tells neither where two secrets differ nor how long they are. */
const matcher = (secret: string): ((presented: Uint8Array) => boolean) => {
  const expected = hash("sha256", Buffer.from(secret, "utf8"), "buffer")
  return (presented) => timingSafeEqual(hash("sha256", presented, "buffer"), expected)
}

const basicCredentials = /^basic +([A-Za-z0-9+/]+)(={0,2})$/i

/**
 * User name and password have exactly one base64 form: comparing that form decides about both at once, needs no
 * decoding, and refuses credentials that are not the UTF-8 of the stored ones.
 */
const basicCheck = ({ password, username }: typeof BasicAuth.Type): Check => {
  const matches = matcher(Buffer.from(`${username}:${password}`, "utf8").toString("base64").replace(/=+$/, ""))
  return ({ headers }) => {
    const header = headers["authorization"]
    const found = typeof header === "string" ? basicCredentials.exec(header) : null
    if (found === null) return false
    const [, digits = "", padding = ""] = found
    const isWellPadded = padding === "" || (digits.length + padding.length) % 4 === 0
    return isWellPadded && matches(Buffer.from(digits, "latin1"))
  }
}

/** The header decides when it is there, even when it is wrong; the query is looked at only without it. */
const apiKeyCheck = ({ api_key, header_key, query_key }: typeof ApiKey.Type): Check => {
  const matches = matcher(api_key)
  const header = header_key?.toLowerCase()
  return ({ headers, query }) => {
    const value = header === undefined ? undefined : headers[header]
    // Header strings hold one byte per character: a key beyond ASCII is compared as the UTF-8 that was sent.
    if (value !== undefined) return typeof value === "string" && matches(Buffer.from(value, "latin1"))
    if (query_key === undefined) return false
    const [first, ...others] = new URLSearchParams(query).getAll(query_key)
    return first !== undefined && others.length === 0 && matches(Buffer.from(first, "utf8"))
  }
}

const hmacCheck = (auth: typeof Hmac.Type): Check => {
  const { timestamp_header, tolerance_seconds = defaultTolerance } = auth
  const hasTimestamp = timestamp_header !== undefined
  const check = compileScheme(
    {
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
    },
    auth.webhook_secret_key
  )
  return check === null ? () => false : ({ body, headers, nowSeconds }) => check(headers, body, nowSeconds)
}

const compileCheck = (source: Exclude<SourceAuth, { readonly auth_type: null }>): Check => {
  switch (source.auth_type) {
    case "BASIC_AUTH":
      return basicCheck(source.auth)
    case "API_KEY":
      return apiKeyCheck(source.auth)
    default:
      return hmacCheck(source.auth)
  }
}

/**
 * Prepares the verification of a source once per change of its settings; `verify` then runs for every request.
 *
 * It takes stored settings as they are and validates them again. What does not validate verifies nobody: it fails
 * closed, because settings whose encryption key is gone read as none, and none must not become a guessable secret.
 */
export const compileSourceAuth = (source: {
  readonly auth_type: string | null
  readonly auth: unknown
}): SourceVerifier => {
  const validated = validateSourceAuth(source.auth_type, source.auth)
  if (Result.isFailure(validated)) return { verify: () => "failed" }
  if (validated.success.auth_type === null) return { verify: () => "unverified" }
  const check = compileCheck(validated.success)
  return { verify: (request) => (check(request) ? "verified" : "failed") }
}
