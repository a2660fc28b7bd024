import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { readAuth } from "../secrets/AuthColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"

/* What the actors of subscriptions read, and write of how they are doing. Each write names the version that it is about. */

/** A subscription that is enabled, and its version. */
export interface DueSubscription {
  readonly source_id: string
  readonly version: number
  /** Unix ms. */
  readonly due_at: number
}

/** All subscriptions of enabled sources. They are few: each is a connection, and a team has a small number. */
export const enabledSubscriptions: Effect.Effect<
  ReadonlyArray<DueSubscription>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ source_id: string; version: bigint; due_at: Date }>`
    select source_id, version, due_at from source_subscriptions where due_at is not null`
  return rows.map(({ due_at, source_id, version }) => ({
    source_id,
    version: Number(version),
    due_at: due_at.getTime()
  }))
})

/** What an actor connects by. */
export interface HeldSubscription {
  readonly source_id: string
  readonly team_id: string
  readonly type: string
  readonly version: number
  readonly settings: Schema.JsonObject
  /** The kind of credentials; null: none. */
  readonly auth_type: string | null
  /** The credentials, encrypted. */
  readonly sealed: string | null
  /** When to connect (Unix ms). */
  readonly due_at: number
  /** Connections that have failed in a row. */
  readonly failures: number
}

/** The subscription of this source; null: the source is disabled, or gone. */
export const readSubscription = Effect.fnUntraced(function* (
  source_id: string
): Effect.fn.Return<HeldSubscription | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    team_id: string
    type: string
    version: bigint
    settings: Schema.JsonObject
    auth_type: string | null
    sealed: string | null
    due_at: Date
    failures: number
  }>`
    select s.team_id, s.type, x.version, s.config -> 'subscription' as settings, s.config ->> 'auth_type' as auth_type,
      s.auth as sealed, x.due_at, x.failures
    from source_subscriptions x join sources s on s.id = x.source_id
    where x.source_id = ${source_id} and x.due_at is not null and s.disabled_at is null and s.deleted_at is null`
  if (row === undefined) return null
  return { ...row, source_id, version: Number(row.version), due_at: row.due_at.getTime() }
})

/** The credentials with which it signs in; null: they cannot be decrypted. */
export const readCredentials = Effect.fnUntraced(function* ({
  sealed,
  source_id,
  team_id
}: HeldSubscription): Effect.fn.Return<Schema.JsonObject | null, never, Secrets> {
  const secrets = yield* Secrets
  return yield* Effect.catch(readAuth(secrets, "sources", { team_id, id: source_id, auth: sealed }), (cause) =>
    Effect.as(Effect.logError("the credentials of a subscription cannot be read", { source_id }, cause), null)
  )
})

/** It is connected. Returns false if the source has changed meanwhile. */
export const markConnected = Effect.fnUntraced(function* (
  { source_id, version }: Pick<HeldSubscription, "source_id" | "version">,
  now: number
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    update source_subscriptions set status = 'connected', connected_at = ${new Date(now)}
    where source_id = ${source_id} and version = ${version} and due_at is not null returning 1`
  return rows.length > 0
})

/** A connection could not be made, or has ended. */
export interface FailedConnection {
  readonly message: string
  /** Failures in a row, with this one. */
  readonly failures: number
  /** When it has failed, and when the next one is made (Unix ms). */
  readonly now: number
  readonly again: number
}

export const markFailed = Effect.fnUntraced(function* (
  { source_id, version }: Pick<HeldSubscription, "source_id" | "version">,
  { again, failures, message, now }: FailedConnection
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update source_subscriptions set status = 'failing', connected_at = null, failures = ${failures}, last_error = ${message},
      last_error_at = ${new Date(now)}, due_at = ${new Date(again)}
    where source_id = ${source_id} and version = ${version} and due_at is not null`
})
