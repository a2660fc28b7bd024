import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"

/** A row of `provider_accounts`, without its tokens. */
export interface AccountRow {
  readonly id: string
  readonly team_id: string
  readonly provider_key: string
  readonly name: string
  readonly connection: "oauth2" | "api_key"
  readonly base_url: string
  readonly email: string | null
  readonly external_account_id: string | null
  readonly scopes: ReadonlyArray<string>
  readonly token_expires_at: Date | null
  readonly last_error: string | null
  readonly failed_at: Date | null
  readonly disabled_at: Date | null
  readonly revoked_at: Date | null
  /** Raised each time it is connected or revoked. */
  readonly version: number
  readonly created_at: Date
  readonly updated_at: Date
}

/** An account with its credentials. OAuth 2: the client of the provider; API key: the fields of the provider's row. */
export interface OpenedAccount extends AccountRow {
  readonly fields: Schema.JsonObject
}

/** The columns of `AccountRow`. */
export const accountColumns = (sql: SqlClient.SqlClient) => sql`
  a.id, a.team_id, a.provider_key, a.name, a.connection, a.base_url, a.email, a.external_account_id, a.scopes,
  a.token_expires_at, a.last_error, a.failed_at, a.disabled_at, a.revoked_at, a.version, a.created_at, a.updated_at`

/**
 * An account of the team with its credentials; null: there is none. Fails when they cannot be decrypted: nothing may be called
 * without them.
 */
export const openAccount = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<OpenedAccount | null, SqlError.SqlError | SecretUnreadable, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<AccountRow & { readonly credentials: string | null }>`
    select ${accountColumns(sql)}, a.credentials from provider_accounts a where a.id = ${id} and a.team_id = ${team_id}`
  if (row === undefined) return null
  const { credentials, ...account } = row
  const fields = yield* sealedColumn(yield* Secrets, "provider_accounts", "credentials").open(row, credentials)
  return { ...account, fields }
})

/** Makes the channels of the account's sources due: their actors see the account's new state. */
export const wakeChannelsOf = Effect.fnUntraced(function* (
  { id, team_id }: { readonly id: string; readonly team_id: string },
  now: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // In the order of their ids, so that two calls that wake the same channels wait for each other.
  yield* sql`
    with held as (
      select c.source_id from channels c join sources s on s.id = c.source_id
      where c.team_id = ${team_id} and s.team_id = ${team_id} and s.config -> 'provider' ->> 'provider_account_id' = ${id}
      order by c.source_id for no key update of c
    )
    update channels set due_at = ${now}, version = version + 1, updated_at = ${now}
    where source_id in (select source_id from held)`
})

/** The longest error that is stored, in characters. */
const longestError = 500

/**
 * Stores that the provider refuses the account's credentials, and wakes its channels. It does nothing for an account that was
 * connected or revoked since it was read (`version`), or that has failed already.
 */
export const failAccount = Effect.fnUntraced(function* (
  { id, team_id, version }: Pick<AccountRow, "id" | "team_id" | "version">,
  message: string,
  now: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const failed = yield* sql`
        update provider_accounts set failed_at = ${now}, last_error = ${message.slice(0, longestError).toWellFormed()}, updated_at = ${now}
        where id = ${id} and team_id = ${team_id} and version = ${version} and failed_at is null and disabled_at is null
        returning 1`
      if (failed.length > 0) yield* wakeChannelsOf({ id, team_id }, now)
    })
  )
})

/** Stores that the provider accepts the account's credentials again, and wakes its channels. */
export const healAccount = Effect.fnUntraced(function* (
  { id, team_id, version }: Pick<AccountRow, "id" | "team_id" | "version">,
  now: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const healed = yield* sql`
        update provider_accounts set failed_at = null, last_error = null, updated_at = ${now}
        where id = ${id} and team_id = ${team_id} and version = ${version} and failed_at is not null and disabled_at is null
        returning 1`
      if (healed.length > 0) yield* wakeChannelsOf({ id, team_id }, now)
    })
  )
})
