import { Result, Schema } from "effect"
import { DeliveryMethod, RatePeriod } from "@tidegate/model/Destination"
import type { FieldError } from "@tidegate/model/GatewayError"
import { urlFault } from "@tidegate/model/UrlFault"
import { OneOf } from "@tidegate/model/AuthSettings"

/**
 * The settings of a destination type. Each has one schema, which validates the written value with its own messages, and is shown in the API
 * document.
 */

export type FieldErrors = ReadonlyArray<FieldError>

/** One setting, with the message for a value of the wrong kind. Null always means: not set. */
interface Described<S extends Schema.Top> {
  readonly schema: S
  readonly kind: string
  /** For a secret: returns the form shown on read, which contains `****`. The secret is stored encrypted. */
  readonly mask?: (secret: string) => string
}

/** An optional setting. */
export interface Optional<S extends Schema.Top, Default> extends Described<S> {
  readonly default: Default
}

/** A required setting; `needed` describes it. */
export interface Needed<S extends Schema.Top> extends Described<S> {
  readonly needed: string
}

export type Setting = Optional<Schema.Top, unknown> | Needed<Schema.Top>
export type Settings = Readonly<Record<string, Setting>>

/** The complete settings. */
export type SettingsOf<S extends Settings> = {
  readonly [Name in keyof S]: S[Name] extends Optional<infer A, infer Default>
    ? A["Type"] | Default
    : S[Name]["schema"]["Type"]
}

/** An optional setting; if it is missing or null it has the default `value`. */
export const setting = <S extends Schema.Top, const Default extends S["Type"] | null>(
  schema: S,
  value: Default,
  kind = "must be a string"
): Optional<S, Default> => ({ schema, default: value, kind })

/** A required setting. */
export const needed = <S extends Schema.Top>(schema: S, what: string, kind = "must be a string"): Needed<S> => ({
  schema,
  needed: what,
  kind
})

/** A text setting that is itself a secret. */
export const secret = <One extends Described<Schema.Top>>(one: One, mask: (secret: string) => string): One => ({
  ...one,
  mask
})

export const text = Schema.String.annotate({ message: "must be a string" })

/** The URL of an HTTP target. */
export const HttpUrl = (longest: number) =>
  text.check(
    Schema.makeFilter((url: string) => urlFault(url, longest, ": use config.auth") ?? true, {
      toJsonSchema: () => ({
        pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\#]+$`,
        maxLength: longest,
        format: "uri"
      })
    })
  )

/** A path on an origin that the type fixes. */
export const Path = text.check(
  Schema.isPattern(/^\/[^\s#\p{Cc}\p{Cs}]{0,2047}$/u, {
    message: "must begin with / and be at most 2048 characters without spaces or a fragment",
    toJsonSchema: () => ({ pattern: String.raw`^\/[^\s#]{0,2047}$` })
  })
)

/** Any JSON. It was parsed or built within limits, so it is not checked again. */
export const AnyJson = Schema.Unknown as unknown as typeof Schema.Json

const wholeNumber = "must be a positive whole number or null"
const Positive = Schema.Number.annotate({ message: wholeNumber }).check(
  Schema.isInt({ message: wholeNumber }).abort(),
  Schema.isGreaterThanOrEqualTo(1, { message: wholeNumber })
)

const yesOrNo = (description: string, value: boolean) =>
  setting(Schema.Boolean.annotate({ description }), value, "must be true or false")

/** Default pace of a type's destinations: the rate that its API accepts from any client. */
export interface Pace {
  /** Deliveries per second. */
  readonly perSecond: number
  /** The API's documented limit. For the API document. */
  readonly because: string
}

/** The rate limit settings, which every type has. */
export const pacingOf = (pace: Pace | null) => ({
  rate_limit: setting(
    Positive.annotate({
      description: `Deliveries per \`rate_limit_period\`; null: ${pace === null ? "no limit" : `${pace.perSecond} per second`}`
    }),
    pace === null ? null : pace.perSecond,
    wholeNumber
  ),
  rate_limit_period: setting(OneOf(RatePeriod.literals), "second")
})

export const pacing = pacingOf(null)

const atOnce = "must be a whole number from 1 to 2000, or null"

/** The concurrency setting, for types whose targets take time to answer. */
export const concurrency = {
  max_concurrency: setting(
    Schema.Number.annotate({
      message: atOnce,
      description: "Maximum deliveries under way at once. Null: the gateway adapts it to the target's responses"
    }).check(
      Schema.isInt({ message: atOnce }).abort(),
      Schema.isBetween({ minimum: 1, maximum: 2_000 }, { message: atOnce })
    ),
    null,
    atOnce
  )
}

const milliseconds = "must be a whole number from 1000 to 60000, or null"

/** How long a target may take, for types that call one. */
export const patience = {
  timeout_ms: setting(
    Schema.Number.annotate({
      message: milliseconds,
      description: "Milliseconds for a call, from its beginning to the last byte of the answer; null: 30,000"
    }).check(
      Schema.isInt({ message: milliseconds }).abort(),
      Schema.isBetween({ minimum: 1_000, maximum: 60_000 }, { message: milliseconds })
    ),
    null,
    milliseconds
  )
}

/** Which parts of a request are forwarded; for types that forward requests unchanged. */
export const forwarding = {
  http_method: setting(
    OneOf(DeliveryMethod.literals).annotate({
      description: "The method of every delivery; null keeps that of the request"
    }),
    null,
    "must be a string or null"
  ),
  path_forwarding_disabled: yesOrNo("Whether the path and the query behind the source's URL are left out", false),
  forward_credentials: setting(
    Schema.Boolean.annotate({
      description:
        "Whether deliveries carry the credentials that senders presented: true, all of them; false, none; null, all but the one that the source itself verifies by"
    }),
    null,
    "must be true, false or null"
  )
}

/** Whether path and query are forwarded, for the same types. */
export const forwardsPath = (config: Config): boolean => config["path_forwarding_disabled"] !== true

/**
 * A member that looks like a setting of the type but is none. The schema lists the values that are accepted anyway, so that a body that was
 * read can be written back.
 */
export type NoSetting = Schema.Top

/** The members of a `config`. */
export type Config = Readonly<Record<string, Schema.Json>>

/** A required text must not be blank. Applies to written values only, so stored ones keep working. */
const notBlank = Schema.makeFilter<unknown>(
  (value) => typeof value !== "string" || value.trim() !== "" || "must not be empty"
)

/** Errors of optional texts that must not be blank, because a blank one would make every delivery fail. */
export const faultsOfBlanks = <S extends object>(settings: S, ...names: ReadonlyArray<keyof S & string>): FieldErrors =>
  names.flatMap((name) => {
    const value: unknown = settings[name]
    return typeof value === "string" && value.trim() === ""
      ? [{ path: `config.${name}`, message: "must not be empty" }]
      : []
  })

/** The members of a written `config`; each may be omitted. */
export const writtenMembers = (
  settings: Settings,
  none: Readonly<Record<string, NoSetting>>
): Schema.Struct.Fields => ({
  ...Object.fromEntries(
    Object.entries(settings).map(([name, one]) => {
      const schema = Schema.NullOr(one.schema).annotate({ message: one.kind })
      return [name, Schema.optionalKey("needed" in one ? schema.check(notBlank) : schema)]
    })
  ),
  ...Object.fromEntries(Object.entries(none).map(([name, schema]) => [name, Schema.optionalKey(schema)]))
})

/** The complete settings of a checked `config`: missing or null ones have their defaults. */
export const completed = <S extends Settings>(
  settings: S,
  written: Config
): Result.Result<SettingsOf<S>, FieldErrors> => {
  const faults: Array<FieldError> = []
  const entries = Object.entries(settings).map(([name, setting]) => {
    const value = written[name] ?? null
    if (value !== null) return [name, value]
    if ("needed" in setting) faults.push({ path: `config.${name}`, message: `is required: ${setting.needed}` })
    return [name, "default" in setting ? setting.default : null]
  })
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(Object.fromEntries(entries) as SettingsOf<S>)
}

/** JSON Schema of written settings. */
export const settingsSchema = (settings: Settings): Schema.JsonObject => {
  const required = Object.keys(settings).filter((name) => "needed" in settings[name]!)
  const { definitions, schema } = Schema.toJsonSchemaDocument(Schema.Struct(writtenMembers(settings, {})))
  const $defs = Object.keys(definitions).length === 0 ? {} : { $defs: definitions }
  return { ...schema, required, additionalProperties: false, ...$defs } as Schema.JsonObject
}
