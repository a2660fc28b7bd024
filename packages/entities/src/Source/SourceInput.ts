import { Result, Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Ingress } from "@tidegate/model/Ingress"
import { SourceMethod } from "@tidegate/model/Source"
import { validateSourceAuth } from "@tidegate/signatures/SourceAuth"
import type { SourceChange, SourceFields } from "@tidegate/storage/Sources"
import { authMembers, changeAuth, checkAuth } from "../AuthInput.ts"
import { decodeBody, Description, fieldError, type FieldErrors, Name, nestConfig, OneOf, orInvalid } from "../Input.ts"

const flat = ["auth_type", "auth", "allowed_http_methods", "custom_response", "mode", "proxy", "chat_defer_ephemeral"]

/** Settings that exist in the contract and not yet here: refused, never stored and ignored. */
const notYet = Schema.NullOr(Schema.JsonObject)
  .annotate({ message: "must be an object or null" })
  .check(
    Schema.makeFilter(
      (value: Schema.JsonObject | null) =>
        value === null || Object.keys(value).length === 0 || "is not available yet: leave it out or write null"
    )
  )

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
    custom_response: Schema.optionalKey(notYet),
    mode: Schema.optionalKey(
      OneOf(["webhook", "proxy"]).check(
        Schema.makeFilter((mode: "webhook" | "proxy") => mode !== "proxy" || '"proxy" is not available yet')
      )
    ),
    proxy: Schema.optionalKey(notYet),
    chat_defer_ephemeral: Schema.optionalKey(
      Schema.NullOr(Schema.Boolean)
        .annotate({ message: "must be true or false" })
        .check(Schema.makeFilter((value: boolean | null) => value !== true || "is not available yet"))
    )
  })
})

const defaultMethods: ReadonlyArray<SourceMethod> = ["POST", "PUT", "PATCH", "DELETE"]

/** A source's URL is the gateway's to give: a written one is accepted when it could be one, and nothing follows from it. */
const checkUrl = (url: string | null | undefined, ingress: Ingress["Service"]): Result.Result<void, FieldErrors> =>
  url === undefined || url === null || URL.parse(url)?.host === new URL(ingress.baseUrl).host
    ? Result.void
    : fieldError("url", `must be on the ingress host, below ${ingress.baseUrl}`)

const decode = (input: Schema.Json, ingress: Ingress["Service"]): Result.Result<typeof Body.Type, FieldErrors> =>
  nestConfig(input, flat).pipe(
    Result.flatMap((body) => decodeBody(Body, body)),
    Result.flatMap((body) => Result.map(checkUrl(body.url, ingress), () => body))
  )

const settings = (config: (typeof Body.Type)["config"], stored: ReadonlyArray<SourceMethod>) => ({
  allowed_http_methods:
    config.allowed_http_methods === undefined ? stored : [...new Set(config.allowed_http_methods ?? defaultMethods)],
  custom_response: null,
  mode: "webhook" as const,
  proxy: null
})

/** What a create stores. */
export const createSource = (
  input: Schema.Json,
  ingress: Ingress["Service"]
): Result.Result<SourceFields, GatewayError> =>
  orInvalid(
    Result.flatMap(decode(input, ingress), ({ config, description, name, status, type }) => {
      if (name === undefined) return fieldError("name", "is required")
      return Result.map(
        checkAuth(config, { auth_type: null, auth: {} }, validateSourceAuth),
        ({ auth, auth_type }): SourceFields => ({
          name,
          description: description ?? null,
          type: type ?? "WEBHOOK",
          disabled: status === "disabled",
          config: { auth_type, ...settings(config, defaultMethods) },
          auth
        })
      )
    })
  )

/** What a change in part makes of what is stored: `config` is merged by member, `auth` replaced whole. */
export const updateSource =
  (input: Schema.Json, ingress: Ingress["Service"]) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> =>
    orInvalid(
      Result.flatMap(decode(input, ingress), ({ config, description, name, status, type }) =>
        Result.map(
          changeAuth(config, { auth_type: stored.config.auth_type, auth: stored.auth }, validateSourceAuth),
          ({ auth, auth_type }): SourceChange => ({
            name: name ?? stored.name,
            description: description === undefined ? stored.description : description,
            type: type ?? stored.type,
            disabled: status === undefined ? stored.disabled : status === "disabled",
            config: { auth_type, ...settings(config, stored.config.allowed_http_methods) },
            auth
          })
        )
      )
    )
