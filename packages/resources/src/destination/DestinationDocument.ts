import { Schema } from "effect"
import type { Connector } from "@tidegate/connectors/Connector"
import { connectors } from "@tidegate/connectors/Connectors"
import type { Setting, Settings } from "@tidegate/connectors/Settings"
import { Destination } from "@tidegate/model/Destination"
import { type OutboundAuthType, outboundAuthOf, outboundAuthTypes } from "@tidegate/outbound-auth/OutboundAuth"
import { alsoBeside, describedAs, otherNames } from "../DescribedAs.ts"
import { Description, Name, optional } from "../Members.ts"
import { example } from "./Example.ts"

/** Destinations for the document: built from the table of their types and the table of authentication types. */

type Fields = Schema.Struct.Fields

/** A setting that may be absent or null: both mean its default. */
const setting = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const mapped = <A>(members: Readonly<Record<string, A>>, change: (member: A) => Schema.Top): Fields =>
  Object.fromEntries(Object.entries(members).map(([name, member]) => [name, change(member)]))

/** An optional setting, with its default. */
const optionally = (one: Setting): Schema.Top => {
  const value = "default" in one ? one.default : null
  return setting(value === null ? one.schema : one.schema.annotate({ default: value }))
}

/** In a complete body; in a partial body; in a read. */
const written = (settings: Settings) => mapped(settings, (one) => ("needed" in one ? one.schema : optionally(one)))
const changed = (settings: Settings) =>
  mapped(settings, (one) => ("needed" in one ? optional(one.schema) : optionally(one)))
/** What a value may be, without what is asked of one that is written. The description of a number stays: it names the unit. */
const bare = (schema: Schema.Top): Schema.Top =>
  schema.annotate({
    ...(schema.ast._tag === "Number" ? {} : { description: undefined }),
    default: undefined,
    examples: undefined
  })
const shown = (settings: Settings) =>
  mapped(settings, (one) => {
    const schema = bare(one.schema)
    return "needed" in one || one.default !== null ? schema : Schema.NullOr(schema)
  })

const disabled = optional(Schema.Boolean.annotate({ description: "true: requests are sent without authentication" }))

const isBare = ({ settings }: OutboundAuthType): boolean => Object.keys(settings).length === 0

/** The `auth` of an authentication type: complete, or disabled, in which case nothing is required. */
const authOf = (row: OutboundAuthType): ReadonlyArray<Schema.Top> =>
  isBare(row)
    ? [Schema.Struct({ disabled }).check(otherNames)]
    : [
        Schema.Struct({ ...row.settings, disabled }).check(otherNames),
        Schema.Struct({
          ...mapped(row.settings as Readonly<Record<string, Schema.Top>>, optional),
          disabled: Schema.Literal(true)
        }).check(otherNames)
      ]

const isNone = (row: OutboundAuthType): boolean => row === outboundAuthOf(null)

const writtenAuth = (row: OutboundAuthType): Fields => {
  const [only = Schema.Null, ...more] = authOf(row)
  const type = Schema.Literal(row.type).annotate(row.description === undefined ? {} : { description: row.description })
  return {
    auth_type: isNone(row) ? setting(type) : type,
    auth: more.length === 0 ? setting(only as Schema.Struct<Fields>) : Schema.Union([only, ...more])
  }
}

/** `MOCK_API` in the form of a type: `MockApi`. */
const typeName = (type: string): string =>
  type.toLowerCase().replaceAll(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

const authsOf = ({ auths }: Connector): ReadonlyArray<OutboundAuthType> =>
  outboundAuthTypes.filter(({ type }) => auths.includes(type))

const configOf = (row: Connector): Schema.Top =>
  Schema.Union(
    authsOf(row).map((auth) =>
      Schema.Struct({ ...written(row.settings), ...mapped(row.none ?? {}, optional), ...writtenAuth(auth) })
    )
  ).annotate({ identifier: `${typeName(row.type)}DestinationConfig` })

const writeOf = (row: Connector): Schema.Top => {
  const config = configOf(row)
  const isDefault = row === connectors[0]
  const type = Schema.Literal(row.type)
  return Schema.Struct({
    name: Name,
    description: optional(Description),
    type: isDefault ? optional(type.annotate({ description: `Default: ${row.type}` })) : type,
    config: Object.values(row.settings).some((one) => "needed" in one) ? config : setting(config)
  })
    .check(alsoBeside("config"))
    .annotate({
      identifier: `${typeName(row.type)}DestinationWrite`,
      title: row.name,
      description: row.description,
      examples: [(isDefault ? example.body : row.example) as never]
    })
}

/** The result of the table is known at run time only: the derived client is typed with this much. */
interface Config {
  readonly [setting: string]: Schema.Json
}

export const DestinationWrite = Schema.Union(connectors.map(writeOf)).annotate({
  identifier: "DestinationWrite",
  description: "The type selects the settings. Members of config may also be at the top level."
}) as unknown as Schema.Codec<{
  readonly name: string
  readonly description?: string | null
  readonly type?: string
  readonly config?: Config | null
}>

const every = connectors.map(({ settings }) => settings)

/**
 * The settings of all types. When types use one name with different meanings (`to`: an address, or a list of them), the schema is
 * a union.
 */
const settingsOfAny: Settings = Object.fromEntries(
  [...new Set(every.flatMap((settings) => Object.keys(settings)))].map((name) => {
    const all = every.flatMap((settings) => (Object.hasOwn(settings, name) ? [settings[name]!] : []))
    // A setting that is optional for one type may be null; a union (a text, or a list of them) includes what the others have.
    const one = all.find((each) => !("needed" in each) && each.default === null) ?? all.at(-1)!
    const choice = all.find(({ schema }) => schema.ast._tag === "Union" && !("literals" in schema))
    return [name, choice === undefined ? one : { ...one, schema: choice.schema }]
  })
)

/** What reads show beside settings: it may be sent back unchanged. */
const derived = Object.assign({}, ...connectors.map((row) => (row.shown === undefined ? {} : row.none))) as Fields

export const DestinationPatch = Schema.Struct({
  name: optional(Name),
  description: optional(Description),
  type: optional(Schema.Literals(connectors.map(({ type }) => type))),
  config: setting(
    Schema.Struct({
      ...mapped(derived as Readonly<Record<string, Schema.Top>>, optional),
      ...changed(settingsOfAny),
      auth_type: setting(Schema.Literals(outboundAuthTypes.map(({ type }) => type))),
      auth: setting(
        Schema.Union([
          ...outboundAuthTypes.filter((row) => !isBare(row)).flatMap(authOf),
          Schema.Struct({ disabled }).check(otherNames)
        ])
      )
    }).annotate({ identifier: "DestinationConfigPatch" })
  )
})
  .check(alsoBeside("config"))
  .annotate({
    identifier: "DestinationPatch",
    description: "Members in the body are merged into the destination; auth is replaced as a whole.",
    examples: [{ config: { rate_limit: 5 } } as never]
  }) as unknown as Schema.Codec<{
  readonly name?: string
  readonly description?: string | null
  readonly type?: string
  readonly config?: Config | null
}>

/** Settings that not every type has are not in every record. */
const shownOfAny: Fields = Object.fromEntries(
  Object.entries({ ...mapped(derived as Readonly<Record<string, Schema.Top>>, bare), ...shown(settingsOfAny) }).map(
    ([name, schema]) => [name, every.every((settings) => name in settings) ? schema : optional(schema as Schema.Top)]
  )
)

/** Masked and readable texts are texts; a number or a list is always readable, and has its own form. */
const shownSetting = (schema: Schema.Top): Schema.Top =>
  optional(schema.ast._tag === "Number" || schema.ast._tag === "Arrays" ? bare(schema) : Schema.String)

const shownAuth = (row: OutboundAuthType): Fields => ({
  auth_type: Schema.Literal(row.type),
  auth: Schema.Struct({ ...mapped(row.settings as Readonly<Record<string, Schema.Top>>, shownSetting), disabled })
})

const bareTypes = outboundAuthTypes.filter(isBare).map(({ type }) => type)

const ShownConfig = Schema.Union([
  Schema.Struct({
    ...shownOfAny,
    auth_type: Schema.NullOr(Schema.Literals(bareTypes)),
    auth: Schema.Struct({ disabled })
  }),
  ...outboundAuthTypes.filter((row) => !isBare(row)).map((row) => Schema.Struct({ ...shownOfAny, ...shownAuth(row) }))
]).annotate({ identifier: "DestinationConfig" })

/** A destination as it is returned. */
export const DestinationRecord = Schema.Struct({
  ...Destination.fields,
  config: Destination.fields.config.pipe(describedAs(ShownConfig))
}).annotate({
  identifier: "Destination",
  description:
    "A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now.",
  examples: [example.record]
})
