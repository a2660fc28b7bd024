import { Result, Schema } from "effect"
import { DeliveryMethod, RatePeriod } from "@tidegate/model/Destination"
import type { FieldError } from "@tidegate/model/GatewayError"
import { urlFault } from "@tidegate/model/UrlFault"
import { OneOf } from "@tidegate/model/AuthSettings"

/**
 * The settings of a destination type. Each has one schema: it judges what is written, in its own words, and is what the document
 * shows.
 */

export type FieldErrors = ReadonlyArray<FieldError>

/** One setting, and what is said of a value of the wrong kind. Null is never a value: it means that it is not given. */
interface Described<S extends Schema.Top> {
  readonly schema: S
  readonly kind: string
  /** Of a secret: what a read shows of it, with `****` in it. It is stored encrypted. */
  readonly mask?: (secret: string) => string
}

/** One that may be left out. */
export interface Optional<S extends Schema.Top, Default> extends Described<S> {
  readonly default: Default
}

/** One that has to be there; `needed` says what it is. */
export interface Needed<S extends Schema.Top> extends Described<S> {
  readonly needed: string
}

export type Setting = Optional<Schema.Top, unknown> | Needed<Schema.Top>
export type Settings = Readonly<Record<string, Setting>>

/** The settings, complete. */
export type SettingsOf<S extends Settings> = {
  readonly [Name in keyof S]: S[Name] extends Optional<infer A, infer Default>
    ? A["Type"] | Default
    : S[Name]["schema"]["Type"]
}

/** A setting that may be left out or null, which both mean `value`. */
export const setting = <S extends Schema.Top, const Default extends S["Type"] | null>(
  schema: S,
  value: Default,
  kind = "must be a string"
): Optional<S, Default> => ({ schema, default: value, kind })

/** A setting that has to be written. */
export const needed = <S extends Schema.Top>(schema: S, what: string, kind = "must be a string"): Needed<S> => ({
  schema,
  needed: what,
  kind
})

/** A setting of text that is a secret itself. */
export const secret = <One extends Described<Schema.Top>>(one: One, mask: (secret: string) => string): One => ({
  ...one,
  mask
})

export const text = Schema.String.annotate({ message: "must be a string" })

/** An address of an HTTP target. */
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

/** A path behind an origin that the type itself has. */
export const Path = text.check(
  Schema.isPattern(/^\/[^\s#\p{Cc}\p{Cs}]{0,2047}$/u, {
    message: "must begin with / and be at most 2048 characters without spaces or a fragment",
    toJsonSchema: () => ({ pattern: String.raw`^\/[^\s#]{0,2047}$` })
  })
)

/** Whatever JSON there is. It was parsed or made within bounds, and is not walked once more. */
export const AnyJson = Schema.Unknown as unknown as typeof Schema.Json

const wholeNumber = "must be a positive whole number or null"
const Positive = Schema.Number.annotate({ message: wholeNumber }).check(
  Schema.isInt({ message: wholeNumber }).abort(),
  Schema.isGreaterThanOrEqualTo(1, { message: wholeNumber })
)

const yesOrNo = (description: string, value: boolean) =>
  setting(Schema.Boolean.annotate({ description }), value, "must be true or false")

/** How fast destinations of a type deliver that say nothing of it: what their API takes from anybody. */
export interface Pace {
  /** Deliveries. */
  readonly perSecond: number
  /** What the API says of it. For the document. */
  readonly because: string
}

/** How fast: every type has these. */
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

/** How many at once: of the types that have a target which takes its time. */
export const concurrency = {
  max_concurrency: setting(
    Schema.Number.annotate({
      message: atOnce,
      description: "Deliveries on the wire at once; null: found out by how the target answers"
    }).check(
      Schema.isInt({ message: atOnce }).abort(),
      Schema.isBetween({ minimum: 1, maximum: 2_000 }, { message: atOnce })
    ),
    null,
    atOnce
  )
}

/** What of a request goes on: of the types that forward it as it is. */
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

/** Of the types that forward it as it is. */
export const forwardsPath = (config: Config): boolean => config["path_forwarding_disabled"] !== true

/** A setting that reads like one of this type and is none: what it may hold all the same, so that what was read can be written. */
export type NoSetting = Schema.Top

/** The members of a `config`. */
export type Config = Readonly<Record<string, Schema.Json>>

/** A text that has to be there says something. What was stored before goes on as it is. */
const notBlank = Schema.makeFilter<unknown>(
  (value) => typeof value !== "string" || value.trim() !== "" || "must not be empty"
)

/** What is wrong with texts that may be left out, and of which a blank one makes nothing that can be sent: each delivery would fail. */
export const faultsOfBlanks = <S extends object>(settings: S, ...names: ReadonlyArray<keyof S & string>): FieldErrors =>
  names.flatMap((name) => {
    const value: unknown = settings[name]
    return typeof value === "string" && value.trim() === ""
      ? [{ path: `config.${name}`, message: "must not be empty" }]
      : []
  })

/** The members of a written `config`, each of which may be left out. */
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

/** The settings that a checked `config` stands for: what is missing or null has its default. */
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
