import { Result, Schema } from "effect"
import { maxSourceBody } from "@tidegate/model/BodyLimits"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { CustomResponse } from "@tidegate/model/Source"
import { compileCustomResponse } from "@tidegate/rules/CustomResponse"
import type { Warning } from "@tidegate/model/Warning"
import { providerOf } from "@tidegate/verification/Providers"
import { misplacedSettings } from "@tidegate/verification/SettingPlaces"
import { plainType, sourceTypeFault } from "@tidegate/verification/SourceTypes"
import { authMembers, changeSourceAuth, checkSourceAuth } from "./AuthInput.ts"
import {
  every,
  fieldError,
  type FieldErrors,
  isObject,
  judgeBody,
  type Members,
  nestConfig,
  orInvalid
} from "./Input.ts"
import { Name, optional } from "./Members.ts"
import { type Change, judgedByOwner, type Next, resource, type Situation } from "./Resource.ts"
import { SourcePatch, SourceRecord, SourceWrite } from "./source/SourceDocument.ts"
import { example } from "./source/Example.ts"
import { defaultMethods, plainSettings, type SourceConfig, type SourceFields } from "./source/Fields.ts"
import { brokerSettings, itemSettings, members, scheduledSettings, settings, Type } from "./source/Members.ts"
import { misplacedProvider } from "./source/Provider.ts"
import { modeAndProxy } from "./source/Proxy.ts"
import { at } from "./ExampleIds.ts"
import { slugOf } from "./source/Url.ts"
import { isWithoutSenders, refuseForeign, settingsWithoutSenders } from "./source/WithoutSenders.ts"

export type { SourceConfig, SourceFields } from "./source/Fields.ts"

const beside = { ...authMembers, ...settings }
const config = { ...beside, ...itemSettings, ...scheduledSettings, ...brokerSettings }
const { description, ...further } = members
const rest = { description, type: optional(Type), ...further, config: optional(Schema.Struct(config)) }
const Write = Schema.Struct({ name: Name, ...rest })
const Patch = Schema.Struct({ name: optional(Name), ...rest })
type Write = typeof Write.Type
type Config = NonNullable<(typeof Patch.Type)["config"]>

/**
 * The settings that may also stand at the top of a body. Not `provider`: a text of that name is meant for `auth`. Not `schedule`: a record of
 * type PROVIDER has another one there.
 */
const flat = Object.keys(beside)

const isProvider = (members: unknown): boolean => isObject(members) && typeof members["provider"] !== "string"

const misplaced = (body: Members): FieldErrors => [
  ...misplacedSettings("", body, [...Object.keys(Patch.fields), ...flat, ...(isProvider(body) ? ["provider"] : [])]),
  ...misplacedSettings("config", body["config"], isProvider(body["config"]) ? Object.keys(config) : flat),
  ...misplacedProvider(body)
]

const checkPlaces = (body: Members): Result.Result<Members, FieldErrors> => {
  const faults = misplaced(body)
  return faults.length === 0 ? Result.succeed(body) : Result.fail(faults)
}

/** Validates a body with its settings in `config`, also by `check`. */
const judge = <S extends Schema.Codec<typeof Patch.Type, unknown>, A>(
  schema: S,
  input: Members,
  check: (body: S["Type"]) => Result.Result<A, FieldErrors>
): Result.Result<A, GatewayError> =>
  orInvalid(
    Result.flatMap(nestConfig(input, flat), (written) =>
      Result.map(
        every({ places: checkPlaces(written), judged: judgeBody(schema, written, check, Patch) }),
        ({ judged }): A => judged
      )
    )
  )

/** Validated by the code that will run it; stored as it was written. An empty one counts as none. */
const customResponse = (
  written: Schema.JsonObject | null | undefined,
  stored: SourceConfig["custom_response"]
): Result.Result<SourceConfig["custom_response"], FieldErrors> => {
  if (written === undefined) return Result.succeed(stored)
  if (written === null || Object.keys(written).length === 0) return Result.succeed(null)
  return Result.match(compileCustomResponse(written), {
    onFailure: ({ message, path }) => fieldError(below("config.custom_response", path), message),
    onSuccess: () => Result.succeed(asCustomResponse(written))
  })
}

const asCustomResponse = Schema.decodeUnknownSync(CustomResponse)

const below = (member: string, path: string): string => {
  if (path === "") return member
  return path.startsWith("[") ? `${member}${path}` : `${member}.${path}`
}

/** The type whose requests are interactions of a chat that wait for an answer. */
const interactionType = "DISCORD"

const chatDefer = (
  type: string,
  written: boolean | null | undefined,
  stored: { readonly type: string; readonly chat_defer_ephemeral: boolean }
): Result.Result<boolean, FieldErrors> => {
  const deferred = written === undefined ? type === stored.type && stored.chat_defer_ephemeral : written === true
  return deferred && type !== interactionType
    ? fieldError("config.chat_defer_ephemeral", `is for sources of type ${interactionType} only`)
    : Result.succeed(deferred)
}

/** The settings of a source of `type`: absent ones stay as stored. */
const settled = (
  type: string,
  config: Config,
  stored: Omit<SourceConfig, "auth_type"> & { readonly type: string }
): Result.Result<Omit<SourceConfig, "auth_type">, FieldErrors> =>
  Result.map(
    every({
      custom_response: customResponse(config.custom_response, stored.custom_response),
      proxied: modeAndProxy(config, stored),
      chat_defer_ephemeral: chatDefer(type, config.chat_defer_ephemeral, stored),
      others: refuseForeign(type, config)
    }),
    ({ chat_defer_ephemeral, custom_response, proxied }) => {
      const methods = config.allowed_http_methods
      const { rate_limit = stored.rate_limit, rate_limit_period = stored.rate_limit_period } = config
      return {
        allowed_http_methods:
          methods === undefined ? stored.allowed_http_methods : [...new Set(methods ?? defaultMethods)],
        custom_response,
        ...proxied,
        chat_defer_ephemeral,
        rate_limit,
        rate_limit_period: rate_limit === null ? rate_limit_period : (rate_limit_period ?? "second")
      }
    }
  )

const knownType = (type: string, stored: string | null, config: Config): Result.Result<void, FieldErrors> => {
  const fault = sourceTypeFault({ type, stored, saysAuthType: config.auth_type !== undefined })
  return fault === null ? Result.void : fieldError("type", fault)
}

const nothingStored = { type: "", ...plainSettings } as const

const create = (
  { config = {}, description, name, status, type = plainType, url = null }: Write,
  { ingress }: Situation
): Result.Result<SourceFields, FieldErrors> => {
  const about = { name, description: description ?? null, type, disabled: status === "disabled" }
  if (isWithoutSenders(type)) {
    const settings = settingsWithoutSenders(type, config, slugOf(url, ingress, null), null)
    return Result.map(settings, ({ auth, ...settings }) => ({
      ...about,
      ...settings,
      auth: auth === "unchanged" ? {} : auth
    }))
  }
  return Result.map(
    every({
      type: knownType(type, null, config),
      slug: slugOf(url, ingress, null),
      auth: checkSourceAuth(type, config),
      settings: settled(type, config, nothingStored)
    }),
    ({ auth: { auth, auth_type }, settings, slug }) => ({
      ...about,
      slug,
      config: { auth_type, ...settings },
      auth
    })
  )
}

const columns = {
  name: "plain",
  description: "plain",
  type: "plain",
  slug: "plain",
  config: "json",
  auth: "sealed",
  disabled: "since"
} as const

export type SourceChange = Change<SourceFields, typeof columns>

const otherKind = (type: string) => fieldError("type", `cannot change to or from ${type}: create another source`)

/**
 * The result of a partial change: `config` is merged by member, and so are `config.provider`, `config.schedule` and `config.subscription`; `auth`,
 * `custom_response`, `proxy`, the `inputs` of a provider, and `body` and `headers` of a schedule are replaced as a whole.
 */
const change =
  (input: Members, { id, ingress }: Situation): Next<SourceFields, typeof columns> =>
  (stored) =>
    judge(Patch, input, ({ config = {}, description, name, status, type = stored.type, url }) => {
      const about = {
        name: name ?? stored.name,
        description: description === undefined ? stored.description : description,
        type,
        disabled: status === undefined ? stored.disabled : status === "disabled"
      }
      const slug = url === undefined ? Result.succeed(stored.slug) : slugOf(url, ingress, id)
      // Connections and workflows of a source expect its kind of requests, so these types are chosen once.
      const fixed = type === stored.type ? undefined : [type, stored.type].find(isWithoutSenders)
      if (fixed !== undefined) return otherKind(fixed)
      if (isWithoutSenders(type)) {
        const settings = settingsWithoutSenders(type, config, slug, stored)
        return Result.map(settings, (settings): SourceChange => ({ ...about, ...settings }))
      }
      return Result.map(
        every({
          type: knownType(type, stored.type, config),
          slug,
          auth: changeSourceAuth(type, config, {
            type: stored.type,
            auth_type: stored.config.auth_type,
            auth: stored.auth
          }),
          settings: settled(type, config, { ...stored.config, type: stored.type })
        }),
        ({ auth: { auth, auth_type }, settings, slug }): SourceChange => ({
          ...about,
          slug,
          config: { auth_type, ...settings },
          auth
        })
      )
    })

/** With a provider's type, the writer expects that requests are verified; a warning says when they are not. */
const warnings = ({ config, type }: typeof SourceRecord.Type): ReadonlyArray<Warning> => {
  const provider = providerOf(type)
  if (provider === undefined || config.auth_type !== null) return []
  const needed = provider.settings.filter(({ required }) => required).map(({ name }) => name)
  const what = needed.length === 0 ? "its settings" : needed.join(" and ")
  const message = `nothing of ${type} is verified, and everybody can send: write ${what} into config.auth`
  return [{ code: "NOT_VERIFIED", message, path: "config.auth" }]
}

/** A source: a public URL, its verification, and the answer to senders. */
export const source = resource({
  name: "source",
  plural: "sources",
  prefix: prefixes.source,
  description: "Public URLs that receive requests. A source defines who may send, and what senders get as an answer.",
  said: {
    create: { description: "Senders post to its `url`. Without `auth` it accepts all senders." },
    upsert: {
      summary: "Create or update a source by its name",
      description: "Updates the source with this name, or creates it."
    },
    retrieve: { description: "Secrets are masked." },
    update: {
      description:
        "Members in the body are merged into the source; `auth`, `custom_response` and `proxy` are replaced as a whole."
    },
    disable: {
      summary: "Disable a source and its connections",
      description:
        "Its requests get 403 and are stored as rejected; waiting events of its connections are cancelled. A repetition changes nothing.",
      answer: { ...example.record, status: "disabled", disabled_at: at }
    },
    enable: {
      description: "Also enables the connections that were disabled together with it. A repetition changes nothing."
    },
    delete: {
      summary: "Delete a source and its connections",
      description: "Its URL then answers 404. Its requests and events stay until retention removes them."
    }
  },
  record: SourceRecord,
  warnings,
  write: {
    message: Write,
    described: SourceWrite,
    misplaced,
    judge: (input, situation) => judge(Write, input, (body) => Result.map(create(body, situation), () => body))
  },
  patch: { ...judgedByOwner(SourcePatch), misplaced },
  create: (input: Write, situation) => orInvalid(create(input, situation)),
  change,
  columns,
  switches: ["disable", "enable"],
  weight: "octet_length(t.config::text)",
  largestBody: maxSourceBody,
  errors: { delete: ["RESOURCE_IN_USE"] },
  example
})
