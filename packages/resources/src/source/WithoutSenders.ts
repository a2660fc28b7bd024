import { Result, type Schema } from "effect"
import { brokerSourceOf, brokerSources } from "@tidegate/connectors/BrokerSources"
import { providerType } from "@tidegate/model/ProviderSource"
import { scheduledType } from "@tidegate/model/ScheduledSource"
import type { Source } from "@tidegate/model/Source"
import { systemType } from "@tidegate/model/SystemSource"
import { every, fieldError, type FieldErrors } from "../Input.ts"
import { type Credited, credentials, subscriptionSettings } from "./Broker.ts"
import { defaultMethods, plainSettings, type SourceConfig, type SourceFields } from "./Fields.ts"
import { providerSettings } from "./Provider.ts"
import { scheduleSettings } from "./Schedule.ts"

/** The types of sources that nobody can send to, because the gateway makes their requests. */

/** The members of `config` as they are written. */
type Written = { readonly [Name in keyof Source["config"]]?: unknown } & {
  readonly provider?: Parameters<typeof providerSettings>[0]
  readonly schedule?: Parameters<typeof scheduleSettings>[0]
  readonly subscription?: Parameters<typeof subscriptionSettings>[1]
  readonly auth_type?: string | null
  readonly auth?: Schema.JsonObject | null
}

type Own = Pick<SourceConfig, "provider" | "schedule" | "subscription">
type Slug = Result.Result<string | null, FieldErrors>

/** The settings that each of these types has of its own. */
const kinds: {
  readonly [type: string]: (config: Written, stored: SourceConfig | null) => Result.Result<Own, FieldErrors>
} = {
  [systemType]: () => Result.succeed({}),
  [providerType]: ({ provider }, stored) =>
    Result.map(providerSettings(provider, stored?.provider ?? null), (provider) => ({ provider })),
  [scheduledType]: ({ schedule }, stored) =>
    Result.map(scheduleSettings(schedule, stored?.schedule ?? null), (schedule) => ({ schedule })),
  ...Object.fromEntries(
    brokerSources.map(({ type }) => [
      type,
      ({ subscription }: Written, stored: SourceConfig | null) =>
        Result.map(subscriptionSettings(type, subscription, stored), (subscription) => ({ subscription }))
    ])
  )
}

/** The types that each setting is for. */
const ownersOf: { readonly [Name in keyof Own]-?: ReadonlyArray<string> } = {
  provider: [providerType],
  schedule: [scheduledType],
  subscription: brokerSources.map(({ type }) => type)
}

/** Whether nobody can send to sources of the type. */
export const isWithoutSenders = (type: string): boolean => Object.hasOwn(kinds, type)

/** Refuses the settings that only sources of another type have. */
export const refuseForeign = (type: string, config: Written): Result.Result<void, FieldErrors> => {
  for (const name of Object.keys(ownersOf) as ReadonlyArray<keyof Own>) {
    const owners = ownersOf[name]
    if (owners.includes(type) || (config[name] ?? null) === null) continue
    return fieldError(`config.${name}`, `is for sources of type ${owners.join(", ")} only`)
  }
  return Result.void
}

const isEmpty = (value: unknown): boolean => value == null || Object.keys(value).length === 0

/** What each other setting may be: the values that the record has, so that it can be written back. */
const withoutEffect: { readonly [Name in Exclude<keyof Source["config"], keyof Own>]-?: (value: unknown) => boolean } =
  {
    auth_type: (type) => type === null,
    auth: isEmpty,
    allowed_http_methods: (methods) => methods === null || JSON.stringify(methods) === JSON.stringify(defaultMethods),
    custom_response: isEmpty,
    mode: (mode) => mode === "webhook",
    proxy: isEmpty,
    chat_defer_ephemeral: (deferred) => deferred !== true,
    rate_limit: (limit) => limit === null,
    rate_limit_period: (period) => period === null
  }

const noEffect = (type: string): string => `has no effect on a source of type ${type}: nobody can send to it`

/** The credentials with which the gateway itself signs in. */
const isOwnCredential = (type: string, name: string): boolean =>
  (name === "auth" || name === "auth_type") && brokerSourceOf(type) !== undefined

const refuseOthers = (type: string, config: Written): Result.Result<void, FieldErrors> => {
  const faults = Object.entries(withoutEffect).flatMap(([name, mayBe]) => {
    const value = config[name as keyof typeof withoutEffect]
    return value === undefined || mayBe(value) || isOwnCredential(type, name)
      ? []
      : [{ path: `config.${name}`, message: noEffect(type) }]
  })
  return faults.length === 0 ? Result.void : Result.fail(faults)
}

/** The settings of a source of such a type. `stored`: null for a new source. */
export const settingsWithoutSenders = (
  type: string,
  config: Written,
  slug: Slug,
  stored: SourceFields | null
): Result.Result<Pick<SourceFields, "config" | "slug"> & Pick<Credited, "auth">, FieldErrors> =>
  Result.flatMap(
    every({
      others: refuseOthers(type, config),
      slug: Result.flatMap(slug, (slug) => (slug === null ? Result.succeed(slug) : fieldError("url", noEffect(type)))),
      foreign: refuseForeign(type, config),
      own: kinds[type]!(config, stored?.config ?? null)
    }),
    ({ own, slug }) =>
      Result.map(credentials(type, config, own.subscription, stored), ({ auth, auth_type }) => ({
        slug,
        auth,
        config: { auth_type, ...plainSettings, ...own }
      }))
  )
