import { Result, Schema } from "effect"
import type { Connector } from "@tidegate/connectors/Connector"
import { connectorOf, connectors, notBuilt, settingsOf } from "@tidegate/connectors/Connectors"
import { type Config, pacing, writtenMembers } from "@tidegate/connectors/Settings"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { authTypeFault, validateOutboundAuth } from "@tidegate/signatures/OutboundAuth"
import type { DestinationChange, DestinationFields } from "@tidegate/storage/Destinations"
import { authMembers, changeAuth, checkAuth } from "@tidegate/resources/AuthInput"
import {
  every,
  fieldError,
  type FieldErrors,
  judgeBody,
  nestConfig,
  orInvalid,
  required
} from "@tidegate/resources/Input"
import { Description, Name } from "@tidegate/resources/Members"

const defaultType = connectors[0].type

/** The settings of any type: they may also stand at the top of a body. */
const flat = [
  ...new Set(connectors.flatMap(({ none, settings }) => Object.keys({ ...settings, ...none }))),
  "auth_type",
  "auth"
]

const Type = Schema.String.annotate({ message: "must be a string" }).check(
  Schema.makeFilter((type: string) => {
    if (connectorOf(type) !== undefined) return true
    return notBuilt.has(type)
      ? `${type} destinations are not available yet`
      : `must be one of ${connectors.map(({ type }) => type).join(", ")}`
  })
)

const bodyWith = (config: Schema.Struct.Fields) =>
  Schema.Struct({
    name: Schema.optionalKey(Name),
    description: Schema.optionalKey(Description),
    type: Schema.optionalKey(Type),
    config: Schema.Struct({ ...config, ...authMembers })
  }) as unknown as Schema.ConstraintDecoder<Body>

interface Body {
  readonly name?: string
  readonly description?: string | null
  readonly type?: string
  readonly config: Config & {
    readonly auth_type?: string | null
    readonly auth?: Schema.JsonObject | null
  }
}

/** The body of each type; of a type that there is not, only what all have. */
const bodies = new Map(connectors.map((row) => [row, bodyWith(writtenMembers(row.settings, row.none ?? {}))]))
const anyBody = bodyWith(writtenMembers(pacing, {}))

/** Judges a body by its type, which is `stored` where it names none. */
const judge = <A>(
  input: Schema.Json,
  stored: string,
  check: (body: Body, connector: Connector) => Result.Result<A, FieldErrors>
): Result.Result<A, FieldErrors> =>
  Result.flatMap(nestConfig(input, flat), (body) => {
    const { type = stored } = body
    const connector = typeof type === "string" ? connectorOf(type) : undefined
    return judgeBody((connector && bodies.get(connector)) ?? anyBody, body, (decoded) =>
      // A type that there is not has been told of; one that is stored was written by a newer version.
      connector === undefined ? fieldError("type", "is not known to this gateway") : check(decoded, connector)
    )
  })

/** The auth that a type allows. */
const allowedBy =
  ({ auths }: Connector) =>
  (authType: unknown, auth: unknown) =>
    validateOutboundAuth(authType, auth, auths)

const noAuth = { auth_type: null, auth: {} }

/** A whole destination as written; masks stand for the secrets of `stored`. */
const whole = (
  input: Schema.Json,
  stored: { readonly auth_type: string | null; readonly auth: Schema.JsonObject }
): Result.Result<DestinationFields, FieldErrors> =>
  judge(input, defaultType, ({ config, description, name }, connector) =>
    Result.map(
      every({
        name: required("name", name),
        auth: checkAuth(config, stored, allowedBy(connector)),
        config: settingsOf(connector, config)
      }),
      ({ auth: { auth, auth_type }, config, name }): DestinationFields => ({
        name,
        description: description ?? null,
        type: connector.type,
        config: { ...config, auth_type },
        auth
      })
    )
  )

/** What a create stores. */
export const createDestination = (input: Schema.Json): Result.Result<DestinationFields, GatewayError> =>
  orInvalid(whole(input, noAuth))

/** What a replacement stores: nothing of what was, but secrets that the input repeats masked. */
export const replaceDestination =
  (input: Schema.Json) =>
  (stored: DestinationFields): Result.Result<DestinationFields, GatewayError> =>
    orInvalid(whole(input, { auth_type: stored.config.auth_type, auth: stored.auth }))

type Change = (stored: DestinationFields) => Result.Result<DestinationChange, GatewayError>

/** What of the stored settings stays: of another type, those that are the very same setting. */
const kept = (stored: DestinationFields, next: Connector): Config => {
  if (stored.type === next.type) return stored.config
  const before = connectorOf(stored.type)?.settings ?? {}
  return Object.fromEntries(Object.entries(stored.config).filter(([name]) => before[name] === next.settings[name]))
}

/** How a changed destination authenticates. What its writer leaves as it is must be what its type allows. */
const nextAuth = (config: Body["config"], stored: DestinationFields, connector: Connector) =>
  Result.flatMap(
    changeAuth(config, { auth_type: stored.config.auth_type, auth: stored.auth }, allowedBy(connector)),
    (changed) => {
      const fault = authTypeFault(changed.auth_type, connector.auths)
      return fault === null ? Result.succeed(changed) : fieldError("config.auth_type", fault)
    }
  )

/** `whole` input names its target, whatever is stored. */
const change =
  (input: Schema.Json, whole: boolean): Change =>
  (stored) =>
    orInvalid(
      judge(input, stored.type, ({ config, description, name }, connector) =>
        Result.map(
          every({
            written: whole ? settingsOf(connector, config) : Result.void,
            auth: nextAuth(config, stored, connector),
            config: settingsOf(connector, { ...kept(stored, connector), ...config })
          }),
          ({ auth: { auth, auth_type }, config }): DestinationChange => ({
            name: name ?? stored.name,
            description: description === undefined ? stored.description : description,
            type: connector.type,
            config: { ...config, auth_type },
            auth
          })
        )
      )
    )

/** What a change in part makes of what is stored: `config` is merged by member, `auth` replaced whole. */
export const updateDestination = (input: Schema.Json): Change => change(input, false)

/** The same for an upsert, which names its target in any case: what it means does not depend on what there is already. */
export const upsertDestination = (input: Schema.Json): Change => change(input, true)
