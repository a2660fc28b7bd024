import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { accountMode, formatterKey, noMode, providerOf } from "@tidegate/actions/Providers"
import { Action } from "@tidegate/model/Action"
import { maxControlBody } from "@tidegate/model/BodyLimits"
import { RatePeriod } from "@tidegate/model/Destination"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import {
  type FieldErrors,
  fieldError,
  isStorableJson,
  judgeBody,
  type Members,
  nestConfig,
  orInvalid,
  required
} from "./Input.ts"
import { Id, Name, OneOf, optional, setting, text } from "./Members.ts"
import { type Body, type Change, judgedByOwner, type Next, resource } from "./Resource.ts"
import { ids, times } from "./ExampleIds.ts"

/** The stored `config` of an action. */
export interface ActionConfig {
  readonly auth_mode: string
  /** Absent in older rows. */
  readonly provider_account_id?: string | null
  /** The version of the action's schema when it was saved. */
  readonly schema_version: string
  readonly inputs: Schema.JsonObject
  readonly rate_limit: number | null
  readonly rate_limit_period: RatePeriod
}

/** A saved action, validated as far as possible without its provider's code. */
export interface ActionFields {
  readonly name: string
  readonly provider_key: string
  readonly action_key: string
  readonly config: ActionConfig
  readonly credentials: Schema.JsonObject
  readonly disabled: boolean
}

/** The limit of one team. */
export const maxActions = 1_000

const longestName = 128
const maxInputBytes = 262_144

const Key = text.check(
  // With the flag, because only such patterns appear in the document.
  Schema.isPattern(/^[a-z0-9_.]{1,96}$/u, { message: "must be a key of the catalog: small letters, digits, _ and ." })
)

const Inputs = Schema.JsonObject.annotate({
  message: "must be an object",
  description: "Default inputs of every step that names it: values, or templates of trigger, run, workflow and source"
}).check(
  Schema.isMaxProperties(200, { message: "must have at most 200 members" }),
  Schema.makeFilter(
    (inputs: Schema.JsonObject) =>
      !isStorableJson(inputs)
        ? "must be valid Unicode without NUL"
        : Buffer.byteLength(JSON.stringify(inputs)) <= maxInputBytes || `must be at most ${maxInputBytes} bytes`,
    { toJsonSchema: () => ({}) }
  )
)

const limit = "must be a whole number from 1 to 1000000, or null"

const config = {
  auth_mode: setting(Key.annotate({ description: "One of the provider's modes (default: its first)" })),
  provider_account_id: setting(Id.annotate({ description: "For the auth_mode `account`: the account of the calls" })),
  credentials: setting(
    Schema.JsonObject.annotate({
      message: "must be an object",
      description:
        "The credentials of the auth_mode, by the names in the catalog's credential_fields. Encrypted at rest, and never returned"
    }).check(Schema.isMaxProperties(50, { message: "must have at most 50 members" }))
  ),
  inputs: setting(Inputs),
  rate_limit: setting(
    Schema.Number.annotate({ message: limit, description: "Calls per `rate_limit_period`. Null: no limit" }).check(
      Schema.isInt({ message: limit }).abort(),
      Schema.isBetween({ minimum: 1, maximum: 1_000_000 }, { message: limit })
    )
  ),
  rate_limit_period: setting(OneOf(RatePeriod.literals))
}

const about = {
  name: optional(Name.check(Characters.upTo(longestName))),
  provider_key: optional(Key),
  action_key: optional(Key),
  status: optional(OneOf(["enabled", "disabled"]))
}

const names = Object.keys(config)

/** The validated members: settings may be in `config`, as they are read, or beside it. */
const Judged = Schema.Struct({ ...about, config: Schema.Struct(config) })
type Written = typeof Judged.Type

const body = {
  name: "Post to ledger",
  provider_key: "http",
  action_key: "request",
  auth_mode: "bearer",
  credentials: { token: "a-token-of-the-ledger" },
  inputs: { method: "POST", url: "https://ledger.example.com/entries" },
  rate_limit: 5
}

const changed = { method: "PUT", url: "https://ledger.example.com/entries" }

const record = {
  id: ids.action,
  team_id: ids.team,
  name: body.name,
  type: "ACTION",
  status: "enabled",
  disabled_at: null,
  held_until: null,
  provider_key: body.provider_key,
  action_key: body.action_key,
  config: {
    auth_mode: body.auth_mode,
    provider_account_id: null,
    credentials_configured: true,
    schema_version: "1.0.0",
    schema_provenance: "catalog",
    inputs: body.inputs,
    rate_limit: 5,
    rate_limit_period: "second"
  },
  workflow_steps_count: 0,
  ...times
}

const { name, provider_key, action_key, ...others } = about
const Patch = Schema.Struct({ ...about, ...config, config: optional(Schema.Struct(config)) }).annotate({
  identifier: "ActionPatch"
})
const Write = Schema.Struct({
  name: name.schema,
  provider_key: provider_key.schema,
  action_key: action_key.schema,
  ...others,
  ...config,
  config: optional(Schema.Struct(config))
}).annotate({ identifier: "ActionWrite", examples: [body] as never })

const judge = <A>(
  input: Members,
  check: (written: Written) => Result.Result<A, FieldErrors>
): Result.Result<A, GatewayError> =>
  orInvalid(Result.flatMap(nestConfig(input, names), (body) => judgeBody(Judged, body, check)))

/** The credentials of an authentication mode, checked by the provider's row. */
const credentialsOf = (
  provider: string,
  mode: string,
  credentials: Schema.JsonObject
): Result.Result<Schema.JsonObject, FieldErrors> => {
  const known = providerOf(provider)
  if (known === undefined && provider !== formatterKey) {
    return fieldError("provider_key", "is not a provider: see GET /action-providers")
  }
  const modes = known?.auth ?? [noMode]
  const row = modes.find(({ key }) => key === mode)
  if (row === undefined) {
    return fieldError("config.auth_mode", `must be one of ${modes.map(({ key }) => key).join(", ")}`)
  }
  return Result.mapError(row.judge(credentials), (faults) =>
    faults.map(({ message, path }) => ({
      path: path === "" ? "config.credentials" : `config.credentials.${path}`,
      message
    }))
  )
}

/** The account that an action names: with the mode `account`, and with no other. */
const accountOf = (mode: string, written: string | null): Result.Result<string | null, FieldErrors> => {
  if (mode === accountMode.key) {
    return written === null ? fieldError("config.provider_account_id", "is required") : Result.succeed(written)
  }
  return written === null
    ? Result.succeed(null)
    : fieldError("config.provider_account_id", `must be null with the auth_mode ${mode}`)
}

const whole = (input: Members): Result.Result<ActionFields, GatewayError> =>
  judge(input, ({ action_key, config, name, provider_key, status }) =>
    Result.gen(function* () {
      const named = yield* required("name", name)
      const provider = yield* required("provider_key", provider_key)
      const action = yield* required("action_key", action_key)
      const auth_mode = config.auth_mode ?? providerOf(provider)?.auth[0].key ?? noMode.key
      return {
        name: named,
        provider_key: provider,
        action_key: action,
        config: {
          auth_mode,
          provider_account_id: yield* accountOf(auth_mode, config.provider_account_id ?? null),
          schema_version: "1.0.0",
          inputs: config.inputs ?? {},
          rate_limit: config.rate_limit ?? null,
          rate_limit_period: config.rate_limit_period ?? "second"
        },
        credentials: yield* credentialsOf(provider, auth_mode, config.credentials ?? {}),
        disabled: status === "disabled"
      }
    })
  )

const columns = {
  name: "plain",
  provider_key: "plain",
  action_key: "plain",
  config: "json",
  credentials: "sealed",
  disabled: "since"
} as const

const fixed = (path: string, written: string | undefined, stored: string) =>
  written === undefined || written === stored
    ? Result.void
    : fieldError(path, "cannot be changed: create another action, and name it in the steps")

const given = <A>(written: A | null | undefined, stored: A, empty: A): A =>
  written === undefined ? stored : (written ?? empty)

/** Inputs and credentials are replaced as a whole; absent ones stay. */
const change =
  (input: Members): Next<ActionFields, typeof columns> =>
  (stored) =>
    judge(input, ({ action_key, config, name, provider_key, status }) =>
      Result.gen(function* () {
        yield* fixed("provider_key", provider_key, stored.provider_key)
        yield* fixed("action_key", action_key, stored.action_key)
        const auth_mode = config.auth_mode ?? stored.config.auth_mode
        const isKept = config.credentials === undefined && auth_mode === stored.config.auth_mode
        return {
          name: name ?? stored.name,
          provider_key: stored.provider_key,
          action_key: stored.action_key,
          config: {
            auth_mode,
            provider_account_id: yield* accountOf(
              auth_mode,
              given<string | null>(config.provider_account_id, stored.config.provider_account_id ?? null, null)
            ),
            schema_version: stored.config.schema_version,
            inputs: given(config.inputs, stored.config.inputs, {}),
            rate_limit: given<number | null>(config.rate_limit, stored.config.rate_limit, null),
            rate_limit_period: given(config.rate_limit_period, stored.config.rate_limit_period, "second")
          },
          credentials: isKept
            ? ("unchanged" as const)
            : yield* credentialsOf(stored.provider_key, auth_mode, config.credentials ?? {}),
          disabled: status === undefined ? stored.disabled : status === "disabled"
        } satisfies Change<ActionFields, typeof columns>
      })
    )

/** A saved action: an action of a provider with its credentials, which workflow steps name. */
export const action = resource({
  name: "action",
  plural: "actions",
  prefix: prefixes.action,
  description: "Actions of providers, saved with their credentials. Steps of workflows refer to them by id.",
  permissions: { read: notByProjectKeys(reading), edit: administering },
  created: 201,
  said: {
    list: { description: "Returns pages by cursor. Credentials are never returned." },
    create: {
      description: "`GET /action-providers` lists all actions with their inputs. A team can have at most 1,000."
    },
    upsert: { description: "Absent members stay unchanged." },
    update: {
      description:
        "`inputs` and `credentials` are replaced as a whole; absent members stay unchanged. Runs that have begun keep their inputs, but use the current credentials.",
      answer: { ...record, config: { ...record.config, inputs: changed } }
    },
    disable: { description: "Steps that name it fail with RESOURCE_DISABLED. A repetition changes nothing." },
    enable: { description: "Steps that name it can call it again. A repetition changes nothing." },
    delete: { description: "Refused while a step of a workflow names it." }
  },
  record: Action,
  write: {
    ...judgedByOwner(Write),
    // No actor is started for a body that cannot create anything.
    judge: (input, { id }) => (id === null ? Result.map(whole(input), () => input) : Result.succeed(input))
  } satisfies Body<typeof Schema.JsonObject, typeof Write>,
  patch: judgedByOwner(Patch),
  create: (input) => whole(input),
  change,
  columns,
  switches: ["disable", "enable"],
  weight: "octet_length(t.config::text)",
  largestBody: maxControlBody,
  most: maxActions,
  errors: { write: ["PROVIDER_ACCOUNT_NOT_CONNECTED"], delete: ["RESOURCE_IN_USE"] },
  example: {
    body,
    patch: { inputs: changed },
    record
  }
})
