import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Scope } from "@tidegate/model/Permission"
import { type KeyInUse, type KeyStatus, lookupOf, statusAt, type StoredStatus } from "@tidegate/model/ProjectKey"
import { gathered } from "../Gathered.ts"
import { isOf, type Pepper, pepperOf } from "../teams/KeyPeppers.ts"
import { teamKeyId, wholeScopes } from "../teams/ProjectKeys.ts"
import { hashToken, type Secrets } from "./Secrets.ts"
import { query } from "../Transaction.ts"

/*
 * Looks up presented keys. Every call looks its key up, so that a change or revocation holds everywhere at once. It is a read of
 * a unique index, which concurrent calls share.
 */

/** An existing key and its state. */
export interface FoundKey {
  readonly key: KeyInUse
  readonly status: KeyStatus
  /** Unix ms; null: it does not expire. */
  readonly expiresAt: number | null
}

const endOf = (status: StoredStatus, end: Date | null) => {
  const expiresAt = end?.getTime() ?? null
  return Effect.map(Clock.currentTimeMillis, (now) => ({ status: statusAt(status, expiresAt, now), expiresAt }))
}

type Find = (text: string) => Effect.Effect<FoundKey | null, GatewayError>

interface TeamKeyRow {
  readonly api_key_hash: string
  readonly team_id: string
  readonly cutover: "pending" | "complete"
  // Null: the team has never listed its keys, and nobody has narrowed this one.
  readonly status: StoredStatus | null
  readonly expires_at: Date | null
  readonly scopes: ReadonlyArray<Scope> | null
  readonly execute_grants: ReadonlyArray<string> | null
  readonly rate_limit_per_minute: number | null
}

/** Finds the API key of a team, or null. It is found by its hash, so the time of a look-up reveals nothing. */
export const teamKeysByText: Effect.Effect<Find, never, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const keys = yield* gathered((hashes) =>
    Effect.map(
      sql<TeamKeyRow>`
        select s.api_key_hash, s.team_id, k.status, k.scopes, k.execute_grants, k.rate_limit_per_minute, k.expires_at, t.key_policy_cutover as cutover
        from project_secrets s join teams t on t.id = s.team_id
        left join project_api_keys k on k.team_id = s.team_id and k.legacy
        where s.api_key_hash = any(${[...hashes]})`,
      (rows) => new Map(rows.map((row) => [row.api_key_hash, row]))
    )
  )
  return (text) => {
    const hash = hashToken(text)
    return query(
      Effect.gen(function* (): Effect.fn.Return<FoundKey | null, SqlError.SqlError> {
        const row = (yield* keys([hash])).get(hash)
        if (row === undefined) return null
        return {
          key: {
            id: teamKeyId(row.team_id),
            team: row.team_id,
            isTeamKey: true,
            scopes: row.scopes ?? wholeScopes,
            grants: row.execute_grants,
            perMinute: row.rate_limit_per_minute,
            isEnforced: row.cutover === "complete"
          },
          ...(yield* endOf(row.status ?? "active", row.expires_at))
        }
      })
    )
  }
})

interface KeyRow {
  readonly id: string
  readonly team_id: string
  readonly lookup: string
  readonly key_hmac: string
  readonly pepper: number
  readonly status: StoredStatus
  readonly expires_at: Date | null
  readonly scopes: ReadonlyArray<Scope>
  readonly execute_grants: ReadonlyArray<string>
  readonly rate_limit_per_minute: number
}

/** Finds a project key, or null. A text with a wrong checksum is not looked up. */
export const projectKeysByText: Effect.Effect<Find, never, SqlClient.SqlClient | Secrets> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const services = yield* Effect.context<SqlClient.SqlClient | Secrets>()
  const peppers = new Map<number, Pepper>()
  const rows = yield* gathered((lookups) =>
    Effect.map(
      sql<KeyRow>`
        select id, team_id, lookup, key_hmac, pepper, status, expires_at, scopes, execute_grants, rate_limit_per_minute
        from project_api_keys where lookup = any(${[...lookups]})`,
      (found) => new Map(found.map((row) => [row.lookup, row]))
    )
  )

  const pepper = Effect.fnUntraced(function* (version: number) {
    const known = peppers.get(version)
    if (known !== undefined) return known
    // A pepper that cannot be decrypted verifies no key (fails closed). A process that lacks a key of the ring says so when it
    // starts.
    const found = yield* Effect.catchTag(pepperOf(version), "SecretUnreadable", () => Effect.succeed(null))
    if (found !== null) peppers.set(version, found)
    return found
  })

  const find = Effect.fnUntraced(function* (
    text: string
  ): Effect.fn.Return<FoundKey | null, GatewayError | SqlError.SqlError, SqlClient.SqlClient | Secrets> {
    const lookup = lookupOf(text)
    if (lookup === null) return null
    const row = (yield* rows([lookup])).get(lookup)
    if (row === undefined) return null
    const by = yield* pepper(row.pepper)
    if (by === null || !isOf(by, text, row.key_hmac)) return null
    const { execute_grants, expires_at, id, rate_limit_per_minute, scopes, status, team_id } = row
    return {
      key: {
        id,
        team: team_id,
        isTeamKey: false,
        scopes,
        grants: execute_grants,
        perMinute: rate_limit_per_minute,
        isEnforced: true
      },
      ...(yield* endOf(status, expires_at))
    }
  })
  return (text) => query(Effect.provideContext(find(text), services))
})
