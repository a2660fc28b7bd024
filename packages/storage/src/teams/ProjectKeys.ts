import { hash, randomBytes, randomInt } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Scope } from "@tidegate/model/Permission"
import {
  lookupOf,
  maskedKey,
  maxKeys,
  maxListed,
  newProjectKey,
  type ProjectKey,
  statusAt,
  type StoredStatus
} from "@tidegate/model/ProjectKey"
import { hmacOf, newestPepper } from "./KeyPeppers.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { holdTeam } from "./Teams.ts"
import { query, transaction } from "../Transaction.ts"

/** How many revoked keys of a team are kept. Nobody would find older ones in a list. */
const maxRevoked = 1_000

/** The settings of a key by its owner. */
export interface KeyPolicy {
  readonly name: string
  readonly status: Exclude<StoredStatus, "revoked">
  readonly scopes: ReadonlyArray<Scope>
  /** Null: every route, which only the team's own key can have. */
  readonly execute_grants: ReadonlyArray<string> | null
  /** Null: the installation's limit for a team's key. */
  readonly rate_limit_per_minute: number | null
  /** ISO 8601; null: it does not expire. */
  readonly expires_at: string | null
}

/** A stored key. Only the team's own key may have null in its policy. */
export type StoredKey = Omit<ProjectKey, "execute_grants" | "rate_limit_per_minute"> &
  Pick<KeyPolicy, "execute_grants" | "rate_limit_per_minute">

interface Row {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly legacy: boolean
  readonly lookup: string | null
  readonly status: StoredStatus
  readonly scopes: ReadonlyArray<Scope>
  readonly execute_grants: ReadonlyArray<string> | null
  readonly rate_limit_per_minute: number | null
  readonly last_used_at: Date | null
  readonly revoked_at: Date | null
  readonly expires_at: Date | null
  readonly created_by_user_id: string | null
  readonly created_at: Date
  readonly updated_at: Date
  readonly api_key_masked: string | null
  readonly api_key_rotated_at: Date | null
  readonly cutover: "pending" | "complete"
}

const storedAt = (row: Row, now: number): StoredKey => ({
  id: row.id,
  team_id: row.team_id,
  name: row.name,
  masked_key: row.lookup === null ? (row.api_key_masked ?? "") : maskedKey(row.lookup),
  status: statusAt(row.status, row.expires_at?.getTime() ?? null, now),
  scopes: row.scopes,
  execute_grants: row.execute_grants,
  rate_limit_per_minute: row.rate_limit_per_minute,
  last_used_at: row.last_used_at?.toISOString() ?? null,
  secret_last_rotated_at: (row.api_key_rotated_at ?? row.created_at).toISOString(),
  revoked_at: row.revoked_at?.toISOString() ?? null,
  expires_at: row.expires_at?.toISOString() ?? null,
  legacy_project_secret: row.legacy,
  created_by_user_id: row.created_by_user_id,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString()
})

const stored = (row: Row) => Effect.map(Clock.currentTimeMillis, (now) => storedAt(row, now))

/** The id under which a team's API key is listed. */
export const teamKeyId = (team: string): string =>
  `pak_legacy_${hash("sha256", `tidegate team key ${team}`, "hex").slice(0, 32)}`

/** The scopes of a team's own key until somebody narrows them. */
export const wholeScopes: ReadonlyArray<Scope> = ["control:read", "control:edit", "control:execute", "tunnel:connect"]

const rowsOf = Effect.fnUntraced(function* (team_id: string, id: string | null) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Row>`
    select k.*, s.api_key_masked, s.api_key_rotated_at, t.key_policy_cutover as cutover
    from project_api_keys k join teams t on t.id = k.team_id
    left join project_secrets s on k.legacy and s.team_id = k.team_id
    where k.team_id = ${team_id} ${id === null ? sql`` : sql`and k.id = ${id}`}
    order by k.status = 'revoked', k.created_at desc, k.id desc limit ${maxListed}`
})

/** Adds a team's API key to its listed keys, if it has one. It may have been used before anyone listed the keys. */
const showTeamKey = Effect.fnUntraced(function* (team_id: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into project_api_keys (id, team_id, name, legacy, scopes, created_at, updated_at, last_used_at)
    select ${teamKeyId(team_id)}, team_id, 'Team API key', true, ${[...wholeScopes]}, created_at, created_at,
      (select max(last_seen_at) from key_audit
       where team_id = ${team_id} and key_id = ${teamKeyId(team_id)}
         and (decision = 'allowed' or reason = 'legacy_shadow_denied'))
    from project_secrets where team_id = ${team_id} on conflict do nothing`
})

const findRow = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<Row, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  if (id === teamKeyId(team_id)) yield* showTeamKey(team_id)
  const [row] = yield* rowsOf(team_id, id)
  return row ?? (yield* notFound("project_api_key", id))
})

/** A team's keys: first the valid ones, newest first, then the newest of the others. */
export const listKeys = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<ReadonlyArray<StoredKey>, SqlError.SqlError, SqlClient.SqlClient> {
  yield* showTeamKey(team_id)
  const now = yield* Clock.currentTimeMillis
  return (yield* rowsOf(team_id, null)).map((row) => storedAt(row, now))
})

export const getKey = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<StoredKey, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  return yield* stored(yield* findRow(team_id, id))
})

/** A new key; `api_key` is stored nowhere. */
export interface MadeKey {
  readonly key: StoredKey
  readonly api_key: string
}

const newKeyId = () => `pak_${randomBytes(16).toString("hex")}`

/**
 * Creates a key, within the team's limit. The team is locked, so that keys created at the same time are counted one after the
 * other. `id` is the same for a repeated call: then the key of this answer is the valid one, because nobody got the earlier one.
 */
export const createKey = Effect.fnUntraced(function* (
  team_id: string,
  { execute_grants, expires_at, name, rate_limit_per_minute, scopes }: Omit<KeyPolicy, "status">,
  created_by_user_id: string | null,
  id: string = newKeyId()
): Effect.fn.Return<MadeKey, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const api_key = newProjectKey(randomInt)
  const lookup = lookupOf(api_key)
  const now = new Date(yield* Clock.currentTimeMillis)
  const pepper = yield* query(Effect.catchTag(newestPepper, "SecretUnreadable", Effect.die))
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* holdTeam(team_id)
      // The key's own row may exist: the transaction is repeated when it is not known whether it was committed.
      const [{ there }] = (yield* sql<{ there: number }>`select count(*)::int as there from project_api_keys
        where team_id = ${team_id} and status <> 'revoked' and not legacy and id <> ${id}`) as [{ there: number }]
      if (there >= maxKeys) {
        return yield* fail("PROJECT_KEY_LIMIT_REACHED", `a team has at most ${maxKeys} keys; revoke one first`, {
          limit: maxKeys
        })
      }
      yield* sql`
        insert into project_api_keys (id, team_id, name, lookup, key_hmac, pepper, scopes, execute_grants, rate_limit_per_minute,
          created_by_user_id, expires_at, expiry_set_at, created_at, updated_at)
        values (${id}, ${team_id}, ${name}, ${lookup}, ${hmacOf(pepper, api_key)}, ${pepper.version}, ${[...scopes]},
          ${[...(execute_grants ?? [])]}, ${rate_limit_per_minute}, ${created_by_user_id}, ${expires_at}, ${now}, ${now}, ${now})
        on conflict (id) do update set lookup = excluded.lookup, key_hmac = excluded.key_hmac, pepper = excluded.pepper
        where project_api_keys.team_id = excluded.team_id`
      yield* sql`delete from project_api_keys where id in (
        select id from project_api_keys where team_id = ${team_id} and status = 'revoked' and not legacy
        order by revoked_at desc, id desc offset ${maxRevoked})`
      return { key: yield* stored(yield* findRow(team_id, id)), api_key }
    })
  )
})

const gated = fail(
  "LEGACY_POLICY_CUTOVER_INCOMPLETE",
  "the team's API key can be changed once the operator has ended the time in which its scopes are only watched"
)

/** A key of a team that may be changed, locked until the transaction ends. */
const held = Effect.fnUntraced(function* (team_id: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const row = yield* findRow(team_id, id)
  yield* sql`select from project_api_keys where id = ${id} for no key update`
  if (row.legacy && row.cutover === "pending") return yield* gated
  return yield* findRow(team_id, id)
})

/** Changes a key by a function of its current state. */
export const updateKey = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  change: (key: StoredKey) => Effect.Effect<KeyPolicy, GatewayError>
): Effect.fn.Return<StoredKey, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const row = yield* held(team_id, id)
      if (row.status === "revoked")
        return yield* fail("PROJECT_KEY_REVOKED", "the key is revoked, and cannot be restored")
      const { execute_grants, expires_at, name, rate_limit_per_minute, scopes, status } = yield* change(
        yield* stored(row)
      )
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`update project_api_keys set name = ${name}, status = ${status}, scopes = ${[...scopes]},
        execute_grants = ${execute_grants === null ? null : [...execute_grants]},
        rate_limit_per_minute = ${rate_limit_per_minute}, expires_at = ${expires_at},
        expiry_set_at = case when expires_at is distinct from ${expires_at}::timestamptz then ${now} else expiry_set_at end,
        updated_at = ${now} where id = ${id}`
      return yield* stored(yield* findRow(team_id, id))
    })
  )
})

/** Revokes a key for good. A repetition changes nothing. */
export const revokeKey = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<StoredKey, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* held(team_id, id)
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* sql`update project_api_keys set status = 'revoked', revoked_at = ${now}, updated_at = ${now}
        where id = ${id} and status <> 'revoked'`
      return yield* stored(yield* findRow(team_id, id))
    })
  )
})

/** How many keys each pepper verifies, without revoked keys. */
export const usesOfPeppers: Effect.Effect<
  ReadonlyArray<{ readonly pepper: number; readonly keys: number }>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ pepper: number; keys: number }>`select pepper, count(*)::int as keys from project_api_keys
    where status <> 'revoked' and not legacy group by pepper order by pepper desc`
})
