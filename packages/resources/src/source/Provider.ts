import { Result, Schema } from "effect"
import { completed, writtenMembers } from "@tidegate/connectors/Settings"
import { maxTargets } from "@tidegate/channels/Adapter"
import type { SourceProvider, Trigger } from "@tidegate/channels/SourceProvider"
import { type Definition, definitionsOf, sourceProviderOf, sourceProviders } from "@tidegate/channels/SourceProviders"
import { didYouMean } from "@tidegate/model/NearestName"
import { deliveryDefaults, type ProviderSettings } from "@tidegate/model/ProviderSource"
import { scheduledType } from "@tidegate/model/ScheduledSource"
import { describedAs } from "../DescribedAs.ts"
import { every, fieldError, type FieldErrors, isObject, judgeBody, type Members } from "../Input.ts"
import { optional, text } from "../Members.ts"

/** `config.provider`: how a source of type PROVIDER gets its items, as it is written, and what it results in. */

const maxFaults = 20

const whole = (minimum: number, maximum: number) => {
  const message = `must be a whole number from ${minimum} to ${maximum}`
  return Schema.Number.annotate({ message }).check(
    Schema.isInt({ message }).abort(),
    Schema.isBetween({ minimum, maximum }, { message })
  )
}

const object = "must be an object or null"

/** A setting that may be absent or null: then it has its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  optional(Schema.NullOr(schema).annotate({ message }))

const number = (minimum: number, maximum: number, about: { readonly description: string; readonly default: number }) =>
  setting(whole(minimum, maximum).annotate(about), `must be a whole number from ${minimum} to ${maximum}`)

/** How a source's items are delivered, apart from the mode. */
export const deliveryMembers = {
  schedule: setting(
    Schema.Struct({
      interval_minutes: number(1, 1440, {
        description: "Minutes between two polls",
        default: deliveryDefaults.interval_minutes
      })
    }).annotate({ description: "When it polls. An instant source polls by it while polling stands in" }),
    object
  ),
  auto_fallback: setting(
    Schema.Boolean.annotate({
      description: "Whether polling stands in while instant delivery fails",
      default: deliveryDefaults.auto_fallback
    }),
    "must be true, false or null"
  ),
  max_failures: number(1, 20, {
    description: "Failures in a row after which polling stands in",
    default: deliveryDefaults.max_failures
  }),
  restore_after_minutes: number(1, 1440, {
    description: "Minutes until instant delivery is tried again; they double after each failure, up to a day",
    default: deliveryDefaults.restore_after_minutes
  })
}

const name = (description: string) => setting(text.annotate({ description }), "must be a string")

const members = {
  provider_key: name("A provider of GET /source-providers; it cannot be changed"),
  definition_key: name("A definition of the provider: it selects what triggers, and the delivery mode"),
  provider_account_id: name("An account at the provider. Required if the provider has accounts"),
  inputs: setting(
    Schema.JsonObject.annotate({
      description: "The inputs of the definition's config_schema; they are replaced as a whole"
    }).check(Schema.isMaxProperties(100, { message: "must have at most 100 members" })),
    object
  ),
  ...deliveryMembers
}

/** Settings of `config.provider` that are easily written beside it, where they would have no effect. */
const readBeside = ["provider_key", "definition_key", "delivery_mode", "schedule", "provider_account_id"]

const Provider = Schema.Struct(members)
type Written = typeof Provider.Type

const Described = Schema.NullOr(Provider.annotate({ identifier: "ProviderSettingsWrite" }))

/** Decoded in `providerSettings`, so that one answer has all faults. */
export const WrittenProvider = Schema.NullOr(Schema.JsonObject)
  .annotate({ message: object })
  .pipe(describedAs(Described))

/** `schedule` is also the name of the settings of a source of type CRON. */
const placeOf = ({ type }: Members, name: string): string =>
  name === "schedule" && type === scheduledType ? "config.schedule" : `config.provider.${name}`

/** A record has some settings beside `config` as well, and may be written back. Without `config.provider` they are misplaced. */
export const misplacedProvider = (body: Members): FieldErrors => {
  const { config, provider } = body
  if (isObject(config) && "provider" in config) return []
  const beside = readBeside
    .filter((name) => body[name] !== undefined)
    .map((name) => ({
      path: name,
      message:
        name === "delivery_mode" ? "is changed by PATCH /sources/{id}/delivery" : `belongs into ${placeOf(body, name)}`
    }))
  return isObject(provider) ? [...beside, { path: "provider", message: "belongs into config.provider" }] : beside
}

const providerOf = (
  written: string | null | undefined,
  stored: ProviderSettings | null
): Result.Result<SourceProvider, FieldErrors> => {
  const at = "provider_key"
  const key = written ?? stored?.provider_key
  if (key === undefined) return fieldError(at, "is required: see GET /source-providers")
  if (stored !== null && key !== stored.provider_key) return fieldError(at, "cannot be changed: create another source")
  const provider = sourceProviderOf(key)
  return provider === undefined
    ? fieldError(
        at,
        `is no provider of sources${didYouMean(
          key,
          sourceProviders.map((one) => one.key)
        )}`
      )
    : Result.succeed(provider)
}

const definitionOf = (
  provider: SourceProvider,
  written: string | null | undefined,
  stored: ProviderSettings | null
): Result.Result<Definition, FieldErrors> => {
  const at = "definition_key"
  const known = definitionsOf(provider)
  const keys = known.map(({ key }) => key)
  const key = written ?? stored?.definition_key
  if (key === undefined) return fieldError(at, `is required: one of ${keys.join(", ")}`)
  const definition = known.find((one) => one.key === key)
  return definition === undefined
    ? fieldError(at, `is no definition of ${provider.key}${didYouMean(key, keys)}`)
    : Result.succeed(definition)
}

const below =
  (place: string) =>
  (faults: FieldErrors): FieldErrors =>
    faults.map(({ message, path }) => ({ path: path === "" ? place : `${place}.${path}`, message }))

/** The inputs of a trigger, complete. All faults are reported, with the nearest name of an unknown one. */
const inputsOf = (trigger: Trigger, written: Schema.JsonObject): Result.Result<Schema.JsonObject, FieldErrors> => {
  const names = Object.keys(trigger.inputs)
  const strange = Object.keys(written)
    .filter((name) => !names.includes(name))
    .slice(0, maxFaults)
    .map((name) => ({ path: name, message: `is no input of ${trigger.key}${didYouMean(name, names)}` }))
  const schema = Schema.Struct(writtenMembers(trigger.inputs, {})) as unknown as Schema.Codec<Members>
  const judged = judgeBody(schema, written, (config) =>
    Result.mapError(completed(trigger.inputs, config), (faults) =>
      faults.map(({ message, path }) => ({ path: path.replace(/^config\./, ""), message }))
    )
  ) as Result.Result<Schema.JsonObject, FieldErrors>
  if (strange.length > 0) return Result.fail([...(Result.isFailure(judged) ? judged.failure : []), ...strange])
  return Result.flatMap(judged, (inputs) => {
    const targets = trigger.adapter?.targets(inputs).length ?? 0
    return targets > maxTargets
      ? fieldError("", `ask for ${targets} subscriptions; a source can have ${maxTargets}`)
      : Result.succeed(inputs)
  })
}

const accountOf = ({ account, name }: SourceProvider, id: string | null): Result.Result<string | null, FieldErrors> => {
  const at = "provider_account_id"
  if (account === null)
    return id === null ? Result.succeed(null) : fieldError(at, `must be null: ${name} has no accounts`)
  return id === null ? fieldError(at, `is required: connect an account at ${name} first`) : Result.succeed(id)
}

/** A written value; null: the default; absent: what is stored, or else the default. */
const or = <A>(written: A | null | undefined, stored: A | undefined, byDefault: A): A =>
  written === null ? byDefault : (written ?? stored ?? byDefault)

/** The delivery settings after a change. */
export const deliveryOf = (written: Pick<Written, keyof typeof deliveryMembers>, stored: ProviderSettings | null) => ({
  schedule: {
    interval_minutes:
      written.schedule === undefined
        ? (stored?.schedule.interval_minutes ?? deliveryDefaults.interval_minutes)
        : (written.schedule?.interval_minutes ?? deliveryDefaults.interval_minutes)
  },
  auto_fallback: or(written.auto_fallback, stored?.auto_fallback, deliveryDefaults.auto_fallback),
  max_failures: or(written.max_failures, stored?.max_failures, deliveryDefaults.max_failures),
  restore_after_minutes: or(
    written.restore_after_minutes,
    stored?.restore_after_minutes,
    deliveryDefaults.restore_after_minutes
  )
})

const next = (given: Written, stored: ProviderSettings | null): Result.Result<ProviderSettings, FieldErrors> =>
  Result.flatMap(providerOf(given.provider_key, stored), (provider) => {
    const { inputs = stored?.inputs, provider_account_id = stored?.provider_account_id ?? null } = given
    const defined = Result.flatMap(definitionOf(provider, given.definition_key, stored), ({ key, trigger }) =>
      Result.mapBoth(inputsOf(trigger, inputs ?? {}), {
        onFailure: below("inputs"),
        onSuccess: (inputs) => ({ definition_key: key, inputs })
      })
    )
    return Result.map(
      every({ defined, account: accountOf(provider, provider_account_id) }),
      ({ account, defined: { definition_key, inputs } }) => ({
        provider_key: provider.key,
        definition_key,
        provider_account_id: account,
        inputs,
        ...deliveryOf(given, stored)
      })
    )
  })

/** The settings after a change: merged by member, `inputs` replaced as a whole. `stored`: null for a new source. */
export const providerSettings = (
  written: Schema.JsonObject | null | undefined,
  stored: ProviderSettings | null
): Result.Result<ProviderSettings, FieldErrors> => {
  if (written === undefined && stored !== null) return Result.succeed(stored)
  if (written === undefined || written === null) {
    return fieldError("config.provider", "is required: the source is of type PROVIDER")
  }
  const judged = judgeBody(Provider, written, (given) => next(given, stored))
  return Result.mapError(judged, below("config.provider"))
}
