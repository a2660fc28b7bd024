import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { holdTeam } from "../teams/Teams.ts"
import { transaction } from "../Transaction.ts"
import { expiryOf } from "./AccountTokens.ts"
import { type AccountRow, wakeChannelsOf } from "./ProviderAccounts.ts"

/** Revoked accounts of a team that stay in its list. */
const maxRevoked = 1_000

/** An account that somebody has just connected. */
export interface Connected extends Pick<
  AccountRow,
  "id" | "team_id" | "provider_key" | "connection" | "base_url" | "email" | "external_account_id" | "scopes"
> {
  /** Null: a reconnected account keeps its name. */
  readonly name: string | null
  readonly fields: Schema.JsonObject
  /** Empty: it has no tokens. */
  readonly held: Schema.JsonObject
  readonly isReconnected: boolean
}

type Place = Pick<Connected, "id" | "isReconnected" | "provider_key" | "team_id">

/**
 * Fails unless the account may be connected: one that exists has to be of this provider, and a new one needs a place among the
 * team's accounts. Returns the existing account.
 */
export const mayConnect = Effect.fnUntraced(function* ({
  id,
  isReconnected,
  provider_key,
  team_id
}: Place): Effect.fn.Return<AccountRow | null, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] =
    yield* sql<AccountRow>`select * from provider_accounts where id = ${id} and team_id = ${team_id} for no key update`
  if (isReconnected) {
    if (row === undefined) return yield* notFound("provider_account", id)
    if (row.provider_key === provider_key) return row
    return yield* invalid([{ path: "account_id", message: `is an account of ${row.provider_key}` }])
  }
  const limit = (yield* TeamLimits)["provider_accounts"]!
  const others = yield* sql`
    select from provider_accounts where team_id = ${team_id} and revoked_at is null and id <> ${id} limit ${limit}`
  if (others.length >= limit) yield* beyondLimit("provider_accounts", limit, "revoke one first")
  return null
})

/** Another person's account would continue the sources of the first one. */
const otherAccount = invalid([
  { path: "account_id", message: "is another account at the provider: connect this one as a new account" }
])

/**
 * Stores a connected account: a new one, or new credentials of one that keeps its id. From then on no older token of it is stored
 * or used. The team is locked, so that accounts connected at the same time are counted one after the other.
 */
export const connectAccount = Effect.fnUntraced(function* (
  account: Connected,
  now: Date
): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const { base_url, connection, email, external_account_id, held, id, name, provider_key, scopes, team_id } = account
  const credentials = yield* sealedColumn(secrets, "provider_accounts", "credentials").seal(account, account.fields)
  const tokens = yield* sealedColumn(secrets, "provider_accounts", "held").seal(account, held)
  yield* transaction(sql)(
    Effect.gen(function* () {
      yield* holdTeam(team_id)
      const before = yield* mayConnect(account)
      const known = before?.external_account_id ?? null
      if (known !== null && external_account_id !== null && known !== external_account_id) return yield* otherAccount
      yield* sql`
        insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, email, external_account_id, scopes,
          credentials, held, token_expires_at, created_at, updated_at)
        values (${id}, ${team_id}, ${provider_key}, ${name ?? before?.name ?? provider_key}, ${connection}, ${base_url}, ${email},
          ${external_account_id}, ${[...scopes]}, ${credentials}, ${tokens}, ${expiryOf(held)}, ${now}, ${now})
        on conflict (id) do update set name = excluded.name, connection = excluded.connection, base_url = excluded.base_url,
          email = excluded.email, external_account_id = coalesce(excluded.external_account_id, provider_accounts.external_account_id),
          scopes = excluded.scopes, credentials = excluded.credentials, held = excluded.held,
          token_expires_at = excluded.token_expires_at, claim = null, claimed_until = null, last_error = null, failed_at = null,
          disabled_at = null, revoked_at = null, revocation = null, version = provider_accounts.version + 1,
          updated_at = excluded.updated_at
        where provider_accounts.team_id = excluded.team_id`
      yield* sql`delete from provider_accounts where id in (
        select id from provider_accounts where team_id = ${team_id} and revoked_at is not null
        order by revoked_at desc, id desc offset ${maxRevoked})`
      return yield* wakeChannelsOf(account, now)
    })
  )
})
