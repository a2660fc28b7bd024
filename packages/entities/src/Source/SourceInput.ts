import { Result, Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Ingress } from "@tidegate/model/Ingress"
import { CustomResponse, SourceMethod } from "@tidegate/model/Source"
import { compileCustomResponse } from "@tidegate/rules/CustomResponse"
import { misplacedSettings } from "@tidegate/signatures/SettingPlaces"
import type { SourceChange, SourceConfig, SourceFields } from "@tidegate/storage/Sources"
import { authMembers, changeSourceAuth, checkSourceAuth } from "@tidegate/resources/AuthInput"
import {
  every,
  fieldError,
  type FieldErrors,
  judgeBody,
  type Members,
  nestConfig,
  orInvalid,
  required
} from "@tidegate/resources/Input"
import { Description, Name, OneOf } from "@tidegate/resources/Members"
import { modeAndProxy, ProxyInput } from "./ProxyInput.ts"
import { slugOf } from "./UrlInput.ts"

const flat = ["auth_type", "auth", "allowed_http_methods", "custom_response", "mode", "proxy", "chat_defer_ephemeral"]

const Methods = Schema.Array(
  SourceMethod.annotate({ message: `must be one of ${SourceMethod.literals.join(", ")}` })
).check(
  Schema.makeFilter((methods: ReadonlyArray<SourceMethod>) => methods.length > 0 || "must name at least one method")
)

const Body = Schema.Struct({
  name: Schema.optionalKey(Name),
  description: Schema.optionalKey(Description),
  type: Schema.optionalKey(
    Schema.String.annotate({ message: "must be a string" }).check(
      Schema.isPattern(/^[A-Z][A-Z0-9_]{0,63}$/, {
        message: "must begin with a capital letter, and have capital letters, digits and underscores only"
      })
    )
  ),
  status: Schema.optionalKey(OneOf(["enabled", "disabled"])),
  url: Schema.optionalKey(Schema.NullOr(Schema.String).annotate({ message: "must be a string or null" })),
  config: Schema.Struct({
    ...authMembers,
    allowed_http_methods: Schema.optionalKey(
      Schema.NullOr(Methods).annotate({ message: "must be an array of methods" })
    ),
    custom_response: Schema.optionalKey(
      Schema.NullOr(Schema.JsonObject).annotate({ message: "must be an object or null" })
    ),
    mode: Schema.optionalKey(OneOf(["webhook", "proxy"])),
    proxy: Schema.optionalKey(ProxyInput),
    chat_defer_ephemeral: Schema.optionalKey(
      Schema.NullOr(Schema.Boolean).annotate({ message: "must be true, false or null" })
    )
  })
})

const defaultMethods: ReadonlyArray<SourceMethod> = ["POST", "PUT", "PATCH", "DELETE"]

const checkPlaces = (body: Members): Result.Result<Members, FieldErrors> => {
  const misplaced = [
    ...misplacedSettings("", body, [...Object.keys(Body.fields), ...flat]),
    ...misplacedSettings("config", body["config"], flat)
  ]
  return misplaced.length === 0 ? Result.succeed(body) : Result.fail(misplaced)
}

/** What is written, judged by `check` as well. */
const judge = <A>(
  input: Schema.Json,
  check: (body: typeof Body.Type) => Result.Result<A, FieldErrors>
): Result.Result<A, FieldErrors> =>
  Result.flatMap(nestConfig(input, flat), (written) =>
    Result.map(every({ places: checkPlaces(written), judged: judgeBody(Body, written, check) }), ({ judged }) => judged)
  )

/** Judged by what will run it; what is stored is what was written. An empty one is none. */
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

/** The settings of a source of `type`: what is not written stays as it is stored. */
const settings = (
  type: string,
  config: (typeof Body.Type)["config"],
  stored: Omit<SourceConfig, "auth_type"> & { readonly type: string }
): Result.Result<Omit<SourceConfig, "auth_type">, FieldErrors> =>
  Result.map(
    every({
      custom_response: customResponse(config.custom_response, stored.custom_response),
      proxied: modeAndProxy(config, stored),
      chat_defer_ephemeral: chatDefer(type, config.chat_defer_ephemeral, stored)
    }),
    ({ chat_defer_ephemeral, custom_response, proxied }) => {
      const methods = config.allowed_http_methods
      return {
        allowed_http_methods:
          methods === undefined ? stored.allowed_http_methods : [...new Set(methods ?? defaultMethods)],
        custom_response,
        ...proxied,
        chat_defer_ephemeral
      }
    }
  )

const nothingStored = {
  type: "",
  allowed_http_methods: defaultMethods,
  custom_response: null,
  mode: "webhook",
  proxy: null,
  chat_defer_ephemeral: false
} as const

/** What a create stores. */
export const createSource = (
  input: Schema.Json,
  ingress: Ingress["Service"]
): Result.Result<SourceFields, GatewayError> =>
  orInvalid(
    judge(input, ({ config, description, name, status, type = "WEBHOOK", url = null }) =>
      Result.map(
        every({
          name: required("name", name),
          slug: slugOf(url, ingress, null),
          auth: checkSourceAuth(type, config),
          settings: settings(type, config, nothingStored)
        }),
        ({ auth: { auth, auth_type }, name, settings, slug }): SourceFields => ({
          name,
          description: description ?? null,
          type,
          disabled: status === "disabled",
          slug,
          config: { auth_type, ...settings },
          auth
        })
      )
    )
  )

/**
 * What a change in part makes of what is stored: `config` is merged by member, and `auth`, `custom_response` and `proxy`
 * are replaced whole.
 */
export const updateSource =
  (id: string, input: Schema.Json, ingress: Ingress["Service"]) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> =>
    orInvalid(
      judge(input, ({ config, description, name, status, type = stored.type, url }) =>
        Result.map(
          every({
            slug: url === undefined ? Result.succeed(stored.slug) : slugOf(url, ingress, id),
            auth: changeSourceAuth(type, config, {
              type: stored.type,
              auth_type: stored.config.auth_type,
              auth: stored.auth
            }),
            settings: settings(type, config, { ...stored.config, type: stored.type })
          }),
          ({ auth: { auth, auth_type }, settings, slug }): SourceChange => ({
            name: name ?? stored.name,
            description: description === undefined ? stored.description : description,
            type,
            disabled: status === undefined ? stored.disabled : status === "disabled",
            slug,
            config: { auth_type, ...settings },
            auth
          })
        )
      )
    )
