import { Result, Schema } from "effect"
import type { BrokerSource } from "@tidegate/connectors/BrokerSource"
import { brokerSourceOf, brokerSources } from "@tidegate/connectors/BrokerSources"
import { type Config, completed, writtenMembers } from "@tidegate/connectors/Settings"
import type { SourceAuthType } from "@tidegate/model/Source"
import { outboundAuthOf, validateWrittenOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { hasMasks } from "@tidegate/redaction/Masking"
import { validateSourceAuth } from "@tidegate/verification/SourceAuth"
import { changeAuth, checkAuth } from "../AuthInput.ts"
import { describedAs, otherNames } from "../DescribedAs.ts"
import { fieldError, type FieldErrors, isStorableJson, judgeBody } from "../Input.ts"
import { plainSettings, type SourceConfig, type SourceFields } from "./Fields.ts"

/** `config.subscription`: to what a source of a broker subscribes, as it is written; and the credentials in `config.auth`. */

const place = "config.subscription"
const object = "must be an object or null"

const undecoded = Schema.NullOr(Schema.JsonObject).annotate({ message: object })

const pascal = (type: string): string =>
  type.toLowerCase().replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Members of any names: the settings of a type. */
const settingsStruct = (fields: Schema.Struct.Fields, identifier: string): Schema.Codec<Config> =>
  (Schema.Struct(fields) as unknown as Schema.Codec<Config>).annotate({ identifier })

const membersOf = (row: BrokerSource) => {
  const members = writtenMembers(row.settings, {})
  /** For the document: a setting without a default is required. */
  const required = Object.fromEntries(
    Object.entries(members).map(([name, schema]) => [
      name,
      "needed" in row.settings[name]! ? row.settings[name].schema : schema
    ])
  )
  return { members, required }
}

const sealed = "Encrypted at rest, masked on read"
const UserAndPassword = Schema.Struct({
  username: Schema.String,
  password: Schema.String.annotate({ description: sealed })
}).annotate({ identifier: "BrokerCredentials", description: "With these the gateway signs in at the broker" })

type Auth = BrokerSource["auths"][number]

const credentialSchemas = new Map<string, Schema.Top>([["BASIC_AUTH", UserAndPassword]])

/** The members of a kind of credentials: their schemas, and their names for the document. One schema for each kind is one component of it. */
export const credentialsOf = (auth: Exclude<Auth, null>): Schema.Top => {
  const known = credentialSchemas.get(auth)
  if (known !== undefined) return known
  const { expand, settings, type } = outboundAuthOf(auth)!
  const members = Schema.Struct(settings)
  // A kind that takes a key file knows names that it does not keep, and refuses others itself.
  const made = (expand === undefined ? members : members.check(otherNames)).annotate({
    identifier: `Broker${pascal(type)}Credentials`
  })
  credentialSchemas.set(auth, made)
  return made
}

/** The credentials of a type of sources, for the document. One that has only one kind implies it. */
const authMembers = (auth: Auth, isOnly: boolean): Schema.Struct.Fields =>
  auth === null
    ? { auth_type: Schema.optionalKey(Schema.Null) }
    : {
        auth_type: isOnly ? Schema.optionalKey(Schema.Literal(auth)) : Schema.Literal(auth),
        auth: credentialsOf(auth)
      }

/** What a read shows beside the subscription, which can be written back: settings for senders, which have no effect. */
const shownMembers = (auths: ReadonlyArray<Auth>): Schema.Struct.Fields => {
  const kinds = auths.filter((auth) => auth !== null)
  const asShown = Object.keys(plainSettings).map((name) => [
    name,
    Schema.optionalKey(Schema.Json.annotate({ description: "Without effect: as a read shows it" }))
  ])
  return {
    ...Object.fromEntries(asShown),
    auth_type: Schema.NullOr(Schema.Literals(kinds)),
    auth: Schema.Union([...kinds.map(credentialsOf), Schema.Struct({})])
  }
}

/** A type with its schemas. */
const rows = brokerSources.map((row) => {
  const { members, required } = membersOf(row)
  const name = pascal(row.type)
  const Settings = settingsStruct(required, `${name}Subscription`)
  return {
    name,
    row,
    Settings,
    Written: Schema.Struct(members) as unknown as Schema.Codec<Config>,
    Config: Schema.Union([
      ...row.auths.map((auth) =>
        Schema.Struct({ subscription: Settings, ...authMembers(auth, row.auths.length === 1) })
      ),
      Schema.Struct({ subscription: Settings, ...shownMembers(row.auths) })
    ]).annotate({ identifier: `${name}SourceConfig` }),
    Patch: settingsStruct(members, `${name}SubscriptionPatch`)
  }
})

/** The types, for the document. */
export const brokerConfigs = rows.map(({ Config, name, row }) => ({ name, row, Config }))

/** A stored subscription, for the document. */
export const ShownSubscription = Schema.Union(rows.map(({ Settings }) => Settings))

const patches = rows.map(({ Patch }) => Patch)

/** Decoded in `subscriptionSettings`, because the type selects the members. */
export const WrittenSubscription = undecoded.pipe(describedAs(Schema.NullOr(Schema.Union(patches))))

const within = (faults: FieldErrors): FieldErrors =>
  faults.map(({ message, path }) => ({ path: path === "" ? place : `${place}.${path}`, message }))

/** A row's own faults name members of `config`, as those of destinations do. */
const ofMembers = (faults: FieldErrors): FieldErrors =>
  faults.map(({ message, path }) => ({
    path: path.replace(/^config\./, ""),
    message: message.replaceAll("config.", `${place}.`)
  }))

/** The settings after a change: merged by member. `stored`: null for a new source. */
export const subscriptionSettings = (
  type: string,
  written: Schema.JsonObject | null | undefined,
  stored: SourceConfig | null
): Result.Result<Schema.JsonObject, FieldErrors> => {
  const before = stored?.subscription
  if (written === undefined && before !== undefined) return Result.succeed(before)
  if (written === undefined || written === null) {
    return fieldError(place, `is required: the source is of type ${type}`)
  }
  const { Written, row } = rows.find((one) => one.row.type === type)!
  if (!isStorableJson(written)) return fieldError(place, "must be valid Unicode without NUL")
  const judged = judgeBody(Written, written, (given) =>
    Result.mapError(
      Result.flatMap(completed(row.settings, { ...before, ...given }), (settings) => {
        const faults = row.check?.(settings as Config) ?? []
        return faults.length === 0 ? Result.succeed(settings as Schema.JsonObject) : Result.fail(faults)
      }),
      ofMembers
    )
  )
  return Result.mapError(judged, within)
}

interface WrittenAuth {
  readonly auth_type?: string | null
  readonly auth?: Schema.JsonObject | null
}

/** What is stored of the credentials. */
export type Credited = Pick<SourceConfig, "auth_type"> & { readonly auth: SourceFields["auth"] | "unchanged" }

const none: Credited = { auth_type: null, auth: "unchanged" }
const moved = "must be sent again, as a whole: what is stored belongs to another address"
const missing = "is required: how the gateway signs in at the broker"

/** What the settings of a kind of credentials must be. */
const validating =
  ({ auths, type }: BrokerSource) =>
  (authType: unknown, auth: unknown): Result.Result<Credentials, FieldErrors> => {
    if (authType === undefined || authType === null) {
      if (auths.includes(null)) return Result.succeed({ auth_type: null, auth: {} })
      return fieldError(authType === null ? "config.auth_type" : "config.auth", missing)
    }
    if (!auths.some((one) => one === authType)) {
      const named = auths.map((one) => one ?? "null")
      return fieldError("config.auth_type", `must be ${named.length > 1 ? "one of " : ""}${named.join(", ")}`)
    }
    const validated: Result.Result<{ readonly auth: Schema.JsonObject }, FieldErrors> =
      authType === "BASIC_AUTH"
        ? Result.map(validateSourceAuth(type, authType, auth), ({ auth }) => ({ auth: { ...auth } }))
        : validateWrittenOutboundAuth(
            authType,
            auth,
            auths.filter((one) => one !== null)
          )
    return Result.flatMap(validated, ({ auth }) =>
      "disabled" in auth
        ? fieldError("config.auth.disabled", "is for destinations only")
        : Result.succeed({ auth_type: authType as SourceAuthType, auth })
    )
  }

interface Credentials {
  readonly auth_type: SourceAuthType | null
  readonly auth: Schema.JsonObject
}

/**
 * The credentials with which the gateway signs in at the broker; none for a source of another kind. Fails closed: stored credentials stay with the
 * address that they were written for. Otherwise a user who may change the address, but may not read them, could have them sent to a
 * server of their own.
 */
export const credentials = (
  type: string,
  written: WrittenAuth,
  subscription: Schema.JsonObject | undefined,
  stored: SourceFields | null
): Result.Result<Credited, FieldErrors> => {
  const row = brokerSourceOf(type)
  if (row === undefined || subscription === undefined) return Result.succeed(none)
  const { auths, leadsTo } = row
  const { auth, auth_type } = written
  const isGiven = auth !== undefined && auth !== null
  // A type of sources with one kind of credentials implies it.
  const given: WrittenAuth = isGiven && auths.length === 1 && !auth_type ? { auth, auth_type: auths[0] } : written
  const before = stored?.config
  if (stored === null && isGiven && given.auth_type === undefined && Object.keys(auth).length > 0) {
    return fieldError(
      "config.auth_type",
      `is required when config.auth is given: one of ${auths.filter(Boolean).join(", ")}`
    )
  }
  const judged: Result.Result<Credited, FieldErrors> =
    stored === null
      ? checkAuth(given, { auth_type: null, auth: {} }, validating(row))
      : changeAuth(given, { auth_type: stored.config.auth_type, auth: stored.auth }, validating(row))
  return Result.flatMap(judged, (next): Result.Result<Credited, FieldErrors> => {
    const isKept = next.auth_type !== null && (!isGiven || hasMasks(next.auth_type, auth))
    if (before?.subscription === undefined || !isKept) return Result.succeed(next)
    const sentTo = outboundAuthOf(next.auth_type)?.sentTo
    const isSentElsewhere =
      sentTo !== undefined && next.auth !== "unchanged" && next.auth[sentTo] !== stored?.auth[sentTo]
    return isSentElsewhere || leadsTo(subscription) !== leadsTo(before.subscription)
      ? fieldError("config.auth", moved)
      : Result.succeed(next)
  })
}
