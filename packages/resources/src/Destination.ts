import { Result, Schema } from "effect"
import type { Connector } from "@tidegate/connectors/Connector"
import { connectorOf, connectors, settingsOf } from "@tidegate/connectors/Connectors"
import { sealed, secretsIn, unmasked } from "@tidegate/connectors/SecretSettings"
import { type Config, pacing, writtenMembers } from "@tidegate/connectors/Settings"
import { maxControlBody } from "@tidegate/model/BodyLimits"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { didYouMean } from "@tidegate/model/NearestName"
import { hasMasks } from "@tidegate/redaction/Masking"
import { authTypeFault, outboundAuthOf, validateWrittenOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { authMembers, changeAuth, checkAuth } from "./AuthInput.ts"
import { DestinationPatch, DestinationRecord, DestinationWrite } from "./destination/DestinationDocument.ts"
import { example } from "./destination/Example.ts"
import {
  every,
  fieldError,
  type FieldErrors,
  judgeBody,
  type Members,
  nestConfig,
  orInvalid,
  required
} from "./Input.ts"
import { Description, Name, optional } from "./Members.ts"
import { type Change, judgedByOwner, type Next, resource } from "./Resource.ts"

/** `config` as stored: the settings of its type, and its `auth_type`; `auth` has a column of its own. */
export type DestinationConfig = Config & { readonly auth_type: string | null }

/**
 * The writable fields of a destination, validated and complete; secrets in plain text. In the stored form, secret settings are in
 * `auth` (`SecretSettings.ts`); a change gets them in `config`.
 */
export interface DestinationFields {
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly config: DestinationConfig
  readonly auth: Schema.JsonObject
}

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
    return `must be one of ${connectors.map(({ type }) => type).join(", ")}`
  })
)

const about = { name: optional(Name), description: optional(Description), type: optional(Type) }

const bodyWith = (config: Schema.Struct.Fields) =>
  Schema.Struct({ ...about, config: Schema.Struct({ ...config, ...authMembers }) }) as unknown as Schema.Codec<Body>

interface Body {
  readonly name?: string
  readonly description?: string | null
  readonly type?: string
  readonly config: Config & {
    readonly auth_type?: string | null
    readonly auth?: Schema.JsonObject | null
  }
}

/** The body of each type; for an unknown type, only the common members. */
const bodies = new Map(connectors.map((row) => [row, bodyWith(writtenMembers(row.settings, row.none ?? {}))]))
const anyBody = bodyWith(writtenMembers(pacing, {}))

/** Settings of another type are refused: they would be dropped silently. */
const settingsOfOthers = ({ none = {}, settings, type }: Connector, config: Members): FieldErrors =>
  Object.keys(config)
    .filter((name) => flat.includes(name) && !(name in authMembers) && !(name in settings) && !(name in none))
    .map((name) => ({
      path: `config.${name}`,
      message: `is no setting of ${type} destinations${didYouMean(name, Object.keys(settings))}`
    }))

/** Validates a body with its settings in `config` by its type, or by the `stored` type when it names none. */
const judge = <A>(
  input: Members,
  stored: string,
  check: (body: Body, connector: Connector) => Result.Result<A, FieldErrors>
): Result.Result<A, GatewayError> =>
  orInvalid(
    Result.flatMap(nestConfig(input, flat), (body) => {
      const { type = stored } = body
      const connector = typeof type === "string" ? connectorOf(type) : undefined
      const foreign = connector === undefined ? [] : settingsOfOthers(connector, body["config"] as Members)
      const judged = judgeBody((connector && bodies.get(connector)) ?? anyBody, body, (decoded) =>
        // An unknown written type was reported already; an unknown stored one was written by a newer version.
        connector === undefined ? fieldError("type", "is not known to this gateway") : check(decoded, connector)
      )
      return foreign.length === 0
        ? judged
        : Result.fail([...(Result.isFailure(judged) ? judged.failure : []), ...foreign])
    })
  )

/** The authentication that a type allows. */
const allowedBy =
  ({ auths }: Connector) =>
  (authType: unknown, auth: unknown) =>
    validateWrittenOutboundAuth(authType, auth, auths)

/** The settings of a type, complete or merged over others; masks stand for the secrets of `stored`. */
const settingsOver = (connector: Connector, written: Config, stored: DestinationFields | null, under: Config = {}) =>
  Result.flatMap(unmasked(connector, written, stored?.type === connector.type ? stored.config : {}), (config) =>
    settingsOf(connector, { ...under, ...config })
  )

const moved = "must be sent again, as a whole: what is stored belongs to another address"

/** New settings, with their credentials. */
interface Credited {
  readonly connector: Connector
  readonly config: Config
  readonly auth_type: string | null
  readonly auth: Schema.JsonObject
}

/**
 * Fails closed: a secret that the writer does not repeat may go only to the target that it was written for. Otherwise a user who
 * may change the address, but may not read the secret, could have it sent to a server of their own.
 */
const stays = <A extends Credited>(
  next: A,
  stored: DestinationFields | null,
  written: Body["config"]["auth"]
): Result.Result<A, FieldErrors> => {
  const { auth, auth_type, config, connector } = next
  const way = outboundAuthOf(auth_type)
  const isKept = written === undefined || written === null || hasMasks(auth_type, written)
  if (stored === null || way === undefined || !isKept || stored.config.auth_type !== auth_type) {
    return Result.succeed(next)
  }
  const isSentElsewhere = way.sentTo !== undefined && auth[way.sentTo] !== stored.auth[way.sentTo]
  const { reachesTarget } = way
  const isSent = reachesTarget === true || (reachesTarget !== undefined && (auth[reachesTarget] ?? null) !== null)
  const target = isSent ? connector.leadsTo?.(config) : undefined
  return isSentElsewhere || (target !== undefined && target !== targetOf(stored))
    ? fieldError("config.auth", moved)
    : Result.succeed(next)
}

/** Null: it has no target, or the target is not known. */
const targetOf = ({ config, type }: DestinationFields): string | null => {
  const row = connectorOf(type)
  const settings = row === undefined ? undefined : Result.getOrUndefined(settingsOf(row, config))
  return settings === undefined ? null : (row?.leadsTo?.(settings) ?? null)
}

/** A complete destination from a body; masks stand for the secrets of `stored`. */
const whole = (input: Members, stored: DestinationFields | null): Result.Result<DestinationFields, GatewayError> =>
  judge(input, defaultType, ({ config, description, name }, connector) =>
    Result.map(
      Result.flatMap(
        every({
          name: required("name", name),
          auth: checkAuth(
            config,
            { auth_type: stored?.config.auth_type ?? null, auth: stored?.auth ?? {} },
            allowedBy(connector)
          ),
          config: settingsOver(connector, config, stored)
        }),
        ({ auth, config: settings, name }) => stays({ ...auth, connector, config: settings, name }, stored, config.auth)
      ),
      ({ auth, auth_type, config, name }): DestinationFields => {
        const storable = sealed(connector, { config, auth })
        return {
          name,
          description: description ?? null,
          type: connector.type,
          config: { ...storable.config, auth_type },
          auth: storable.auth
        }
      }
    )
  )

/** Whether the stored auth holds settings beside the credentials. */
const holdsSecrets = ({ config, type }: DestinationFields): boolean => {
  const row = connectorOf(type)
  return row !== undefined && secretsIn(row, config).length > 0
}

/** The stored settings that stay; after a change of type, only settings that are the same in both types. */
const kept = (stored: DestinationFields, next: Connector): Config => {
  if (stored.type === next.type) return stored.config
  const before = connectorOf(stored.type)?.settings ?? {}
  return Object.fromEntries(Object.entries(stored.config).filter(([name]) => before[name] === next.settings[name]))
}

const foreign = "is required with another type: what is stored is the credential of another API"
/** Whether it is a credential that one particular API has issued. */
const isOfApi = (authType: string | null): boolean =>
  authType !== null && !["NO_AUTH", "SERVICE_SIGNATURE", "CUSTOM_HEADER"].includes(authType)

/** The authentication of a changed destination. An unchanged part must be allowed by the new type. */
const nextAuth = (config: Body["config"], stored: DestinationFields, connector: Connector) =>
  Result.flatMap(
    changeAuth(config, { auth_type: stored.config.auth_type, auth: stored.auth }, allowedBy(connector)),
    (changed) => {
      const fault = authTypeFault(changed.auth_type, connector.auths)
      if (fault !== null) return fieldError("config.auth_type", fault)
      // A custom header may follow the destination to another type; the credential of an API is not valid for another API.
      const isForeign = changed.auth === "unchanged" && connector.type !== stored.type && isOfApi(changed.auth_type)
      return isForeign ? fieldError("config.auth", foreign) : Result.succeed(changed)
    }
  )

const columns = { name: "plain", description: "plain", type: "plain", config: "json", auth: "sealed" } as const

export type DestinationChange = Change<DestinationFields, typeof columns>

/** `isWhole`: the body names its target, whatever is stored. */
const change =
  (input: Members, isWhole: boolean): Next<DestinationFields, typeof columns> =>
  (stored) =>
    judge(input, stored.type, ({ config, description, name }, connector) =>
      Result.map(
        Result.flatMap(
          every({
            written: isWhole ? settingsOf(connector, config) : Result.void,
            auth: nextAuth(config, stored, connector),
            config: settingsOver(connector, config, stored, kept(stored, connector))
          }),
          ({ auth: { auth, auth_type }, config: settings }) => {
            const next = auth === "unchanged" ? stored.auth : auth
            const isUnchanged = auth === "unchanged"
            return stays({ connector, config: settings, auth_type, auth: next, isUnchanged }, stored, config.auth)
          }
        ),
        ({ auth, auth_type, config, isUnchanged }): DestinationChange => {
          const isKept = isUnchanged && secretsIn(connector, config).length === 0 && !holdsSecrets(stored)
          const storable = sealed(connector, { config, auth })
          return {
            name: name ?? stored.name,
            description: description === undefined ? stored.description : description,
            type: connector.type,
            config: { ...storable.config, auth_type },
            auth: isKept ? "unchanged" : storable.auth
          }
        }
      )
    )

/** Where events are delivered to, at what rate, and with which credentials. */
export const destination = resource({
  name: "destination",
  plural: "destinations",
  prefix: prefixes.destination,
  description: "A target of events, with its rate, concurrency and credentials.",
  said: {
    list: { description: "Returns pages by cursor, each destination with its attempts of the last 24 hours." },
    create: {
      description:
        "The address of the URL is checked for every delivery. Private networks are refused unless the operator allows them."
    },
    upsert: { description: "Absent members stay unchanged. Secrets may be sent masked." },
    retrieve: { description: "Secrets are masked." },
    update: {
      description: "Members in the body are merged into the destination; `auth` is replaced as a whole.",
      answer: { ...example.record, config: { ...example.record.config, rate_limit: 5 } }
    },
    replace: { description: "Absent members get their defaults. Secrets may be sent masked." },
    disable: {
      description:
        "Its waiting events are cancelled, and its connections route nothing to it. A repetition changes nothing."
    },
    enable: { description: "Its connections route to it again. A repetition changes nothing." },
    delete: {
      summary: "Delete a destination and its connections",
      description: "Its waiting events are cancelled."
    }
  },
  record: DestinationRecord,
  write: {
    ...judgedByOwner(DestinationWrite),
    // No actor is started for a body that cannot create anything.
    judge: (input, { id }) => (id === null ? Result.map(whole(input, null), () => input) : Result.succeed(input))
  },
  patch: judgedByOwner(DestinationPatch),
  create: (input) => whole(input, null),
  // `config` is merged by member, `auth` replaced as a whole.
  change: (input) => change(input, false),
  // It always names its target: its meaning does not depend on what is stored.
  upsert: (input) => change(input, true),
  // Nothing of the stored one stays, except secrets that the body repeats as masks.
  replace:
    (input): Next<DestinationFields, typeof columns> =>
    (stored) =>
      whole(input, stored),
  columns,
  switches: ["disable", "enable"],
  weight: "octet_length(t.config::text)",
  largestBody: maxControlBody,
  errors: { delete: ["RESOURCE_IN_USE"] },
  example: { ...example, patch: { config: { rate_limit: 5 } } }
})
