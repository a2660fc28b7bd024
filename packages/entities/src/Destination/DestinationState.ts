import { Cause, Effect, Redacted, Result } from "effect"
import type { SqlError } from "effect/sql"
import type { Connector, OpenAuth, Sender } from "@tidegate/connectors/Connector"
import { settingsOf } from "@tidegate/connectors/Connectors"
import type { Config, Pace } from "@tidegate/connectors/Settings"
import { secretsIn as settingsIn } from "@tidegate/connectors/SecretSettings"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import type { RatePeriod } from "@tidegate/model/Destination"
import type { RetryPolicy } from "@tidegate/rules/Retry"
import { retryOf } from "@tidegate/rules/RuleSet"
import { Echoes } from "@tidegate/redaction/Echoes"
import { secretsIn } from "@tidegate/redaction/Masking"
import {
  carrying,
  compileOutboundAuth,
  type DeliveryAuth,
  validateOutboundAuth
} from "@tidegate/outbound-auth/OutboundAuth"
import { prepareSigningSecret, type SigningSecret } from "@tidegate/outbound-auth/DeliverySignature"
import {
  type DeliveringConnection,
  type DeliveringDestination,
  readDeliverySettings
} from "@tidegate/storage/delivery/DeliverySettings"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { signingSecrets } from "@tidegate/storage/teams/ProjectSecrets"
import { type Credential, credentialOf } from "../tokens/Credential.ts"
import type { ConnectionQueueState } from "./queue/QueueHost.ts"
import type { Credentials } from "./sending/ForwardedCredentials.ts"

/** The settings of one connection that delivers to a destination. */
export interface ConnectionQueueSettings {
  readonly id: string
  readonly name: string
  readonly sourceName: string
  readonly state: ConnectionQueueState
  /** Unix ms; 0 when nothing is cancelled by time. */
  readonly cancelBefore: number
  /** When it was last unpaused (Unix ms), 0 if never: what was pending then is delivered with trigger UNPAUSE. */
  readonly resumedAt: number
  /** How its events are ordered by their ordering keys; see `ConnectionQueueRules`. */
  readonly order?: "block" | "skip" | "none"
  /** Null: no retry rule, or one that cannot be read. */
  readonly retry: RetryPolicy | null
}

/** A sender that needs a token, and how the token is requested. */
export interface Bearer {
  readonly credential: Credential
  /** May throw; then the attempt fails. */
  readonly open: (token: string) => Sender
}

/** A destination as its actor holds it: read from SQL when the actor starts and on every `Reload`. */
export interface DestinationState {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly state: ConnectionQueueState
  readonly isDeleted: boolean
  readonly cancelBefore: number
  /** Until when its target accepts nothing more (Unix ms), as stored; 0: it accepts deliveries. */
  readonly heldUntil: number
  readonly rate: { readonly limit: number; readonly period: RatePeriod } | null
  /** The largest number of concurrent deliveries; null: found out by the concurrency limit. */
  readonly maxConcurrency: number | null
  readonly credentials: Credentials
  /**
   * Null when it cannot deliver as configured: its secrets cannot be read, or the destination is gone. Fails closed: nothing is
   * sent unsigned. Also null when `bearer` is set.
   */
  readonly sender: Sender | null
  /** Opens the sender with a token, where a token is needed. */
  readonly bearer: Bearer | null
  /** Masks the destination's credentials in stored answers; null: it has none. */
  readonly echoes: Echoes | null
  readonly connections: ReadonlyMap<string, ConnectionQueueSettings>
}

type Lookup = (type: string) => Connector | undefined

/** Reads a destination and its connections; null when there is no such row. */
export const loadDestination = Effect.fnUntraced(function* (
  id: string,
  shard: number,
  connectorOf: Lookup
): Effect.fn.Return<DestinationState | null, SqlError.SqlError, Database | Secrets> {
  const stored = yield* readDeliverySettings(id, shard)
  if (stored === null) return null
  const { connections, destination } = stored
  const opened = destination.deleted_at === null ? yield* openSender(destination, connectorOf) : neither
  return stateOf(destination, connections, opened, connectorOf)
})

/** A destination and its connections, with its opened sender. */
export const stateOf = (
  destination: DeliveringDestination,
  connections: ReadonlyArray<DeliveringConnection>,
  opened: Opens,
  connectorOf: Lookup
): DestinationState => {
  const { cancel_before, config, deleted_at, disabled_at, held_until, id, name, team_id, type } = destination
  const atOnce = opened.sender?.kind === "session" ? opened.sender.atOnce : config["max_concurrency"]
  return {
    id,
    teamId: team_id,
    name,
    isDeleted: deleted_at !== null,
    state: disabled_at !== null || deleted_at !== null ? "cancelled" : "open",
    cancelBefore: ms(cancel_before),
    heldUntil: ms(held_until),
    rate: rateOf(config, connectorOf(type)?.pace),
    maxConcurrency: typeof atOnce === "number" ? atOnce : null,
    credentials: credentialsOf(connectorOf(type)?.credentials ?? "mask", config["forward_credentials"]),
    ...opened,
    connections: new Map(connections.map((connection) => [connection.id, connectionQueueOf(connection)]))
  }
}

/**
 * The rate of the settings, or of the destination's type where they have none: a row may be older than the default rate of its
 * type.
 */
const rateOf = (config: Config, pace: Pace | undefined): DestinationState["rate"] => {
  const limit = config["rate_limit"]
  if (typeof limit === "number") return { limit, period: (config["rate_limit_period"] ?? "second") as RatePeriod }
  return pace === undefined ? null : { limit: pace.perSecond, period: "second" }
}

const credentialsOf = (ofType: Credentials, asked: unknown): Credentials => {
  if (asked === false) return "omit"
  return ofType === "forward" && asked !== true ? "forward-others" : ofType
}

const ms = (date: Date | null): number => date?.getTime() ?? 0

const connectionQueueOf = (row: DeliveringConnection): ConnectionQueueSettings => ({
  id: row.id,
  name: row.name,
  sourceName: row.source_name,
  state: row.disabled_at !== null || row.deleted_at !== null ? "cancelled" : row.paused_at !== null ? "paused" : "open",
  cancelBefore: ms(row.cancel_before),
  resumedAt: ms(row.resumed_at),
  ...(row.has_lines ? { order: row.ordering?.on_failure ?? "none" } : {}),
  retry: Result.getOrNull(retryOf(row.rules))
})

type Opens = Pick<DestinationState, "sender" | "bearer" | "echoes">

const neither: Opens = { sender: null, bearer: null, echoes: null }

/**
 * Opens the sender of a destination, or what opens it with a token. When neither can be opened, both are null and operators get a
 * log line.
 */
export const openSender = Effect.fnUntraced(function* (
  destination: DeliveringDestination,
  connectorOf: Lookup
): Effect.fn.Return<Opens, SqlError.SqlError, Database | Secrets> {
  const about = { destination_id: destination.id }
  const connector = connectorOf(destination.type)
  if (connector === undefined) {
    // A newer version of the gateway wrote it.
    yield* Effect.logError("a destination cannot deliver: its type is not known here", about)
    return neither
  }
  const found = yield* openAuth(destination, connector)
  const settings = settingsOf(connector, destination.config)
  if (found === null || Result.isFailure(settings)) {
    yield* Effect.logError("a destination cannot deliver: its settings or secrets cannot be read", about)
    return neither
  }
  const origins = yield* ApiOrigins
  const { auth, compiled } = found
  const { grant = null } = compiled
  const echoes = Echoes.of([
    ...secretsIn(destination.config.auth_type, auth.settings),
    ...Object.values(auth.headers).map((value) => value.replace(/^\S+ /, "")),
    ...settingsIn(connector, destination.config)
  ])
  if (grant !== null) {
    const { id, team_id } = destination
    const credential = credentialOf({ id, team_id }, grant, connector.scope ?? null, origins)
    const open = (token: string): Sender =>
      connector.open(settings.success, { ...auth, ...carrying(compiled, token) }, origins)
    return { sender: null, bearer: { credential, open }, echoes }
  }
  try {
    return { sender: connector.open(settings.success, auth, origins), bearer: null, echoes }
  } catch (cause) {
    yield* Effect.logError("a destination cannot deliver: its sender broke down", about, Cause.die(cause))
    return neither
  }
})

/** How it authenticates; null when its settings or secrets cannot be read. */
const openAuth = Effect.fnUntraced(function* (
  { auth, config, team_id }: DeliveringDestination,
  { auths }: Connector
): Effect.fn.Return<{ auth: OpenAuth; compiled: DeliveryAuth } | null, SqlError.SqlError, Database | Secrets> {
  const checked = auth === null ? null : Result.getOrNull(validateOutboundAuth(config.auth_type, auth, auths))
  if (checked === null) return null
  const compiled = compileOutboundAuth(checked)
  const { carry: _, grant: __, signs, ...own } = compiled
  const signing = signs ? yield* signingKeys(team_id) : null
  // Authentication is switched off: what is stored beside the flag is not used.
  const settings = checked.auth["disabled"] === true ? {} : checked.auth
  return signs && signing === null ? null : { auth: { ...own, signing, settings }, compiled }
})

const signingKeys = Effect.fnUntraced(function* (teamId: string) {
  const prepared: Array<SigningSecret> = []
  const stored = yield* Effect.catchTag(signingSecrets(teamId), "SecretUnreadable", () => Effect.succeed([]))
  for (const { secret, until } of stored) {
    const result = prepareSigningSecret(Redacted.value(secret), until)
    if (Result.isSuccess(result)) prepared.push(result.success)
  }
  const [first, ...rest] = prepared
  return first === undefined ? null : ([first, ...rest] as const)
})
