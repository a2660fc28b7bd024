import { Result, Schema } from "effect"
import { DeliveryMethod, mockUrl, RatePeriod } from "@tidegate/model/Destination"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { validateOutboundAuth } from "@tidegate/signatures/OutboundAuth"
import type { DestinationChange, DestinationConfig, DestinationFields } from "@tidegate/storage/Destinations"
import { authMembers, changeAuth, checkAuth } from "@tidegate/resources/AuthInput"
import {
  every,
  fieldError,
  type FieldErrors,
  judgeBody,
  nestConfig,
  orInvalid,
  required
} from "@tidegate/resources/Input"
import { Description, Name, OneOf, urlFault } from "@tidegate/resources/Members"

const flat = [
  "url",
  "path",
  "http_method",
  "path_forwarding_disabled",
  "forward_credentials",
  "rate_limit",
  "rate_limit_period",
  "auth_type",
  "auth"
]

const types: ReadonlyArray<string> = ["HTTP", "MOCK_API"]

/** Types that exist in the contract and not yet here. */
const notYet: ReadonlySet<string> = new Set([
  "CLI",
  "SPREADSHEET",
  "MAILBOX_EMAIL",
  "EMAIL_API_EMAIL",
  "CHAT_BOT",
  "CHAT_WEBHOOK",
  "MESSENGER_MESSAGE",
  "OBJECT_STORE_R",
  "OBJECT_STORE_S",
  "MESSAGING_CHAT",
  "MESSAGING_SMS",
  "MESSAGING_MMS",
  "SQL_DATABASE"
])

const Type = Schema.String.annotate({ message: "must be a string" }).check(
  Schema.makeFilter((type: string) => {
    if (types.includes(type)) return true
    return notYet.has(type) ? `${type} destinations are not available yet` : `must be one of ${types.join(", ")}`
  })
)

const longestUrl = 4096

const string = Schema.String.annotate({ message: "must be a string" })
const Url = string.check(Schema.makeFilter((text: string) => urlFault(text, longestUrl, ": use config.auth") ?? true))
const Path = string.check(
  Schema.isPattern(/^\/[^\s#\p{Cc}\p{Cs}]{0,2047}$/u, {
    message: "must begin with / and be at most 2048 characters without spaces or a fragment"
  })
)
const wholeNumber = "must be a positive whole number or null"
const RateLimit = Schema.Number.check(
  Schema.makeFilter((limit: number) => (Number.isSafeInteger(limit) && limit > 0) || wholeNumber)
)

/** A setting that may be left out, or null: then it has its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate({ message }))

const Body = Schema.Struct({
  name: Schema.optionalKey(Name),
  description: Schema.optionalKey(Description),
  type: Schema.optionalKey(Type),
  config: Schema.Struct({
    url: setting(Url, "must be a string"),
    path: setting(Path, "must be a string"),
    http_method: setting(OneOf(DeliveryMethod.literals), "must be a string or null"),
    path_forwarding_disabled: setting(Schema.Boolean, "must be true or false"),
    forward_credentials: setting(Schema.Boolean, "must be true or false"),
    rate_limit: setting(RateLimit, wholeNumber),
    rate_limit_period: setting(OneOf(RatePeriod.literals), "must be a string"),
    ...authMembers
  })
})

type Config = (typeof Body.Type)["config"]

const judge = <A>(
  input: Schema.Json,
  check: (body: typeof Body.Type) => Result.Result<A, FieldErrors>
): Result.Result<A, FieldErrors> => Result.flatMap(nestConfig(input, flat), (body) => judgeBody(Body, body, check))

/** The settings of a type: its target, and what all types have. What is null or missing has its default. */
const settings = (type: string, config: Config): Result.Result<Omit<DestinationConfig, "auth_type">, FieldErrors> => {
  const { forward_credentials, http_method, path, path_forwarding_disabled, rate_limit, rate_limit_period, url } =
    config
  const common = {
    http_method: http_method ?? null,
    path_forwarding_disabled: path_forwarding_disabled ?? false,
    forward_credentials: forward_credentials ?? true,
    rate_limit: rate_limit ?? null,
    rate_limit_period: rate_limit_period ?? "second"
  }
  if (type === "MOCK_API") {
    // As it reads: who writes back what he has read has changed nothing.
    return typeof url === "string" && url !== mockUrl
      ? fieldError("config.url", "is fixed for MOCK_API destinations; use config.path")
      : Result.succeed({ path: path ?? "/", ...common })
  }
  if (typeof path === "string") {
    return fieldError("config.path", "is for MOCK_API destinations; write it into config.url")
  }
  return typeof url === "string"
    ? Result.succeed({ url, ...common })
    : fieldError("config.url", "is required: an absolute http or https URL")
}

const noAuth = { auth_type: null, auth: {} }

/** A whole destination as written; masks stand for the secrets of `stored`. */
const whole = (
  input: Schema.Json,
  stored: { readonly auth_type: string | null; readonly auth: Schema.JsonObject }
): Result.Result<DestinationFields, FieldErrors> =>
  judge(input, ({ config, description, name, type = "HTTP" }) =>
    Result.map(
      every({
        name: required("name", name),
        auth: checkAuth(config, stored, validateOutboundAuth),
        config: settings(type, config)
      }),
      ({ auth: { auth, auth_type }, config, name }): DestinationFields => ({
        name,
        description: description ?? null,
        type,
        config: { ...config, auth_type },
        auth
      })
    )
  )

/** What a create stores. */
export const createDestination = (input: Schema.Json): Result.Result<DestinationFields, GatewayError> =>
  orInvalid(whole(input, noAuth))

/** What a replacement stores: nothing of what was, but secrets that the input repeats masked. */
export const replaceDestination =
  (input: Schema.Json) =>
  (stored: DestinationFields): Result.Result<DestinationFields, GatewayError> =>
    orInvalid(whole(input, { auth_type: stored.config.auth_type, auth: stored.auth }))

type Change = (stored: DestinationFields) => Result.Result<DestinationChange, GatewayError>

/** `whole` input names its target, whatever is stored. */
const change =
  (input: Schema.Json, whole: boolean): Change =>
  (stored) =>
    orInvalid(
      judge(input, ({ config, description, name, type = stored.type }) => {
        const target = type === stored.type ? stored.config : { ...stored.config, url: null, path: null }
        return Result.map(
          every({
            written: whole ? settings(type, config) : Result.void,
            auth: changeAuth(config, { auth_type: stored.config.auth_type, auth: stored.auth }, validateOutboundAuth),
            config: settings(type, { ...target, ...config })
          }),
          ({ auth: { auth, auth_type }, config }): DestinationChange => ({
            name: name ?? stored.name,
            description: description === undefined ? stored.description : description,
            type,
            config: { ...config, auth_type },
            auth
          })
        )
      })
    )

/** What a change in part makes of what is stored: `config` is merged by member, `auth` replaced whole. */
export const updateDestination = (input: Schema.Json): Change => change(input, false)

/** The same for an upsert, which names its target in any case: what it means does not depend on what there is already. */
export const upsertDestination = (input: Schema.Json): Change => change(input, true)
