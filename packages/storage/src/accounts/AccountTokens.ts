import { Effect, Predicate, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"

/*
 * The tokens of an OAuth 2 account, encrypted. A process asks the provider only with a claim, which is in the account's row and
 * ends by the database's clock. So two processes never use one refresh token at the same time.
 */

/** The tokens of an account; empty if they cannot be decrypted: then a person has to consent again. */
type Held = Schema.JsonObject

export const readAccountTokens = Effect.fnUntraced(function* (
  owner: Owner
): Effect.fn.Return<Held, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const [row] = yield* sql<{ held: string | null }>`
    select held from provider_accounts where id = ${owner.id} and team_id = ${owner.team_id}`
  return yield* sealedColumn(secrets, "provider_accounts", "held").show(owner, row?.held ?? null)
})

/** Takes the claim on an account's tokens for this time; returns the current tokens. Null: another process has the claim. */
export const claimAccountTokens = Effect.fnUntraced(function* (
  owner: Owner,
  claim: string,
  forMs: number
): Effect.fn.Return<Held | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const [row] = yield* sql<{ held: string | null }>`
    update provider_accounts set claim = ${claim}, claimed_until = clock_timestamp() + make_interval(secs => ${forMs / 1_000}::float8)
    where id = ${owner.id} and team_id = ${owner.team_id}
      and (claim is null or claim = ${claim} or claimed_until <= clock_timestamp())
    returning held`
  return row === undefined ? null : yield* sealedColumn(secrets, "provider_accounts", "held").show(owner, row.held)
})

/** When the access token among these tokens expires; null: there is none. */
export const expiryOf = (held: Held): Date | null => {
  const access = held["access"]
  const at = Predicate.hasProperty(access, "expires_at") ? access.expires_at : null
  return typeof at === "number" ? new Date(at) : null
}

/**
 * Stores new tokens and releases the claim; false: another process has the claim by now, or the account was connected again or
 * revoked meanwhile, and nothing was stored.
 */
export const storeAccountTokens = Effect.fnUntraced(function* (
  owner: Owner,
  claim: string,
  held: Held
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const sealed = yield* sealedColumn(yield* Secrets, "provider_accounts", "held").seal(owner, held)
  const rows = yield* sql`
    update provider_accounts set held = ${sealed}, token_expires_at = ${expiryOf(held)}::timestamptz, claim = null, claimed_until = null
    where id = ${owner.id} and team_id = ${owner.team_id} and claim = ${claim} returning 1`
  return rows.length > 0
})
