import { Result, Schema } from "effect"
import type { BrokerSource } from "@tidegate/connectors/BrokerSource"
import { brokerSourceOf, brokerSources } from "@tidegate/connectors/BrokerSources"
import { type Config, completed, writtenMembers } from "@tidegate/connectors/Settings"
import { hasMasks } from "@tidegate/redaction/Masking"
import { changeSourceAuth, checkSourceAuth } from "../AuthInput.ts"
import { describedAs } from "../DescribedAs.ts"
import { fieldError, type FieldErrors, isStorableJson, judgeBody } from "../Input.ts"
import type { SourceConfig, SourceFields } from "./Fields.ts"

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

const Credentials = Schema.Struct({
  username: Schema.String,
  password: Schema.String.annotate({ description: "Encrypted at rest, masked on read" })
}).annotate({ identifier: "BrokerCredentials", description: "With these the gateway signs in at the broker" })

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
    Config: Schema.Struct({
      subscription: Settings,
      auth_type: Schema.optionalKey(Schema.Literal(row.authType)),
      auth: Credentials
    }).annotate({ identifier: `${name}SourceConfig` }),
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
  faults.map(({ message, path }) => ({ path: path.replace(/^config\./, ""), message }))

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
  const { authType, leadsTo } = row
  const { auth, auth_type } = written
  // Their type is implied: a broker's sources have only one.
  const given: WrittenAuth = auth === undefined || auth === null || auth_type ? written : { auth, auth_type: authType }
  const judged: Result.Result<Credited, FieldErrors> =
    stored === null
      ? checkSourceAuth(type, given)
      : changeSourceAuth(type, given, { type, auth_type: stored.config.auth_type, auth: stored.auth })
  return Result.flatMap(judged, (next): Result.Result<Credited, FieldErrors> => {
    if (next.auth_type !== authType) {
      const path = auth_type === undefined || auth_type === null ? "config.auth" : "config.auth_type"
      return fieldError(
        path,
        path === "config.auth" ? "is required: how the gateway signs in at the broker" : `must be ${authType}`
      )
    }
    const before = stored?.config.subscription
    const isKept = auth === undefined || auth === null || hasMasks(authType, auth)
    return before !== undefined && isKept && leadsTo(subscription) !== leadsTo(before)
      ? fieldError("config.auth", moved)
      : Result.succeed(next)
  })
}
