import { Effect, Redacted, Result, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type HttpTarget } from "@tidegate/connectors/HttpDelivery"
import { mockUrl, type RatePeriod } from "@tidegate/model/Destination"
import type { Rule } from "@tidegate/model/Rule"
import type { RetryPolicy } from "@tidegate/rules/Retry"
import { compileRules } from "@tidegate/rules/RuleSet"
import { maskSecret } from "@tidegate/signatures/Masking"
import { compileOutboundAuth, type DeliveryAuth, validateOutboundAuth } from "@tidegate/signatures/OutboundAuth"
import { prepareSigningSecret, type SigningSecret } from "@tidegate/signatures/DeliverySignature"
import type { DestinationConfig } from "@tidegate/storage/Destinations"
import { Secrets } from "@tidegate/storage/Secrets"
import { signingSecrets } from "@tidegate/storage/Teams"
import type { LaneState } from "./DeliveryQueue.ts"
import type { Credentials } from "./ForwardedCredentials.ts"

/** What a destination knows of one connection that delivers to it. */
export interface ConnectionState {
  readonly id: string
  readonly name: string
  readonly sourceName: string
  readonly state: LaneState
  /** Unix ms; 0 when nothing is cancelled by time. */
  readonly cancelBefore: number
  /** When it was last unpaused (Unix ms), 0 if never: what was pending then is delivered with trigger UNPAUSE. */
  readonly resumedAt: number
  /** Null: no retry rule, or one that cannot be read. */
  readonly retry: RetryPolicy | null
}

/** A destination as its actor holds it: read from SQL at activation and on every `Reload`. */
export interface DestinationState {
  readonly id: string
  readonly teamId: string
  readonly name: string
  readonly type: string
  readonly state: LaneState
  readonly cancelBefore: number
  readonly rate: { readonly limit: number; readonly period: RatePeriod } | null
  /** A mock's stay masked, because its echo is kept. */
  readonly credentials: Credentials
  /** Null when it cannot deliver as configured: its secrets cannot be read. Fails closed: nothing is sent unsigned. */
  readonly target: HttpTarget | null
  readonly connections: ReadonlyMap<string, ConnectionState>
}

interface DestinationRow {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly type: string
  readonly config: DestinationConfig
  readonly auth: string | null
  readonly disabled_at: Date | null
  readonly cancel_before: Date | null
  readonly deleted_at: Date | null
}

interface ConnectionRow {
  readonly id: string
  readonly name: string
  readonly source_name: string
  readonly rules: ReadonlyArray<Rule>
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
  readonly paused_at: Date | null
  readonly resumed_at: Date | null
  readonly cancel_before: Date | null
}

const ms = (date: Date | null): number => date?.getTime() ?? 0

/** Reads a destination and the connections that have something to do with it; null when there is no such row. */
export const loadDestination = Effect.fnUntraced(function* (
  id: string,
  shard: number
): Effect.fn.Return<DestinationState | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<DestinationRow>`
    select id, team_id, name, type, config, auth, disabled_at, cancel_before, deleted_at from destinations where id = ${id}`
  if (row === undefined) return null
  // Those that deliver here, and those that did: their waiting events still do, or have to be cancelled.
  const connections = yield* sql<ConnectionRow>`
    with recursive lanes as (
      (select connection_id from deliveries where shard = ${shard} and destination_id = ${id} order by connection_id limit 1)
      union all
      select (select d.connection_id from deliveries d where d.shard = ${shard} and d.destination_id = ${id}
        and d.connection_id > lanes.connection_id order by d.connection_id limit 1)
      from lanes where lanes.connection_id is not null
    )
    select c.id, c.name, s.name as source_name, c.rules, c.disabled_at, c.deleted_at, c.paused_at, c.resumed_at, c.cancel_before
    from connections c join sources s on s.id = c.source_id
    where (c.destination_id = ${id} and c.deleted_at is null)
      or c.id in (select connection_id from lanes where connection_id is not null)`
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    type: row.type,
    state: row.disabled_at !== null || row.deleted_at !== null ? "cancelled" : "open",
    cancelBefore: ms(row.cancel_before),
    rate:
      row.config.rate_limit === null ? null : { limit: row.config.rate_limit, period: row.config.rate_limit_period },
    credentials: row.config.forward_credentials === false ? "omit" : row.type === "MOCK_API" ? "mask" : "forward",
    target: yield* loadTarget(row),
    connections: new Map(
      connections.map((connection) => [
        connection.id,
        {
          id: connection.id,
          name: connection.name,
          sourceName: connection.source_name,
          state:
            connection.disabled_at !== null || connection.deleted_at !== null
              ? "cancelled"
              : connection.paused_at !== null
                ? "paused"
                : "open",
          cancelBefore: ms(connection.cancel_before),
          resumedAt: ms(connection.resumed_at),
          retry: Result.getOrNull(Result.map(compileRules(connection.rules), (rules) => rules.retry))
        }
      ])
    )
  }
})

const parseJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

const loadTarget = Effect.fnUntraced(function* (
  row: DestinationRow
): Effect.fn.Return<HttpTarget | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const auth = yield* deliveryAuth(row)
  const signing = auth?.signs === true ? yield* signingKeys(row.team_id) : null
  if (auth === null || (auth.signs && signing === null)) {
    yield* Effect.logError("a destination cannot deliver: its secrets cannot be read", { destination_id: row.id })
    return null
  }
  const isMock = row.type === "MOCK_API"
  const target: HttpTarget = {
    url: isMock ? mockUrl + (row.config.path ?? "/").slice(1) : (row.config.url ?? ""),
    http_method: row.config.http_method,
    path_forwarding_disabled: row.config.path_forwarding_disabled,
    // The echo of a mock is kept with its attempt, and everybody who may read that sees it.
    authHeaders: isMock ? masked(auth.headers) : auth.headers,
    signing
  }
  return target
})

const masked = (headers: DeliveryAuth["headers"]): DeliveryAuth["headers"] =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskSecret(value)]))

/** The stored settings, decrypted and compiled; null when they cannot be read. */
const deliveryAuth = Effect.fnUntraced(function* (
  row: DestinationRow
): Effect.fn.Return<DeliveryAuth | null, never, Secrets> {
  const secrets = yield* Secrets
  const written =
    row.auth === null
      ? Effect.succeed({})
      : Effect.flatMap(
          secrets.decrypt({ team_id: row.team_id, table: "destinations", column: "auth", id: row.id }, row.auth),
          parseJson
        )
  const checked = yield* Effect.result(written)
  if (Result.isFailure(checked)) return null
  return Result.getOrNull(Result.map(validateOutboundAuth(row.config.auth_type, checked.success), compileOutboundAuth))
})

const signingKeys = Effect.fnUntraced(function* (teamId: string) {
  const prepared: Array<SigningSecret> = []
  const stored = yield* Effect.catchTag(signingSecrets(teamId), "SecretUnreadable", () => Effect.succeed([]))
  for (const secret of stored) {
    const result = prepareSigningSecret(Redacted.value(secret))
    if (Result.isSuccess(result)) prepared.push(result.success)
  }
  const [first, ...rest] = prepared
  return first === undefined ? null : ([first, ...rest] as const)
})
