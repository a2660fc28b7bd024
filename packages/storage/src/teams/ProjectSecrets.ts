import { randomBytes } from "node:crypto"
import { Clock, Effect, Redacted } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { ProjectSecrets, SecretName } from "@tidegate/model/ProjectSecrets"
import { maskSecret } from "@tidegate/redaction/Masking"
import { hashToken, type SecretAddress, Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import { query, transaction } from "../Transaction.ts"

/** How long deliveries are signed with the former secret in addition to the new one. */
const formerMs = 24 * 3_600_000

/** A key or token as it is shown: its prefix, and a mask for the rest. */
export const maskKey = (value: string): string => {
  const prefix = /^[a-z]{2,8}_/.exec(value)?.[0] ?? ""
  return prefix + maskSecret(value.slice(prefix.length))
}

export const addressOf = (team_id: string, column: "signing_secret" | "previous_signing_secret"): SecretAddress => ({
  team_id,
  table: "project_secrets",
  column,
  id: team_id
})

export const newApiKey = (): string => `gwk_${randomBytes(32).toString("hex")}`
export const newSigningSecret = (): string => `gws_${randomBytes(32).toString("hex")}`

/** New values of a team's secrets; absent ones stay. */
export type NewSecrets = { readonly [Name in SecretName]?: string }

interface Row {
  readonly api_key_masked: string
  readonly api_key_rotated_at: Date
  readonly signing_secret: string
  readonly signing_secret_masked: string
  readonly signing_secret_rotated_at: Date
  readonly created_at: Date
  readonly updated_at: Date
}

const shown = (team_id: string, row: Row): ProjectSecrets => ({
  team_id,
  api_key: {
    masked_value: row.api_key_masked,
    has_secret: true,
    last_rotated_at: row.api_key_rotated_at.toISOString()
  },
  signing_secret: {
    masked_value: row.signing_secret_masked,
    has_secret: true,
    last_rotated_at: row.signing_secret_rotated_at.toISOString()
  },
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString()
})

/** The team's row, locked. A missing row is created with random secrets. Nobody knows that API key until it is replaced. */
const rowOf = Effect.fnUntraced(function* (team: string, now: Date) {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const find = sql<Row>`select * from project_secrets where team_id = ${team} for update`
  const [found] = yield* find
  if (found !== undefined) return found
  const [key, signing] = [newApiKey(), newSigningSecret()]
  const sealed = yield* secrets.encrypt(addressOf(team, "signing_secret"), signing)
  yield* sql`
    insert into project_secrets (team_id, api_key_hash, api_key_masked, api_key_rotated_at, signing_secret,
      signing_secret_masked, signing_secret_rotated_at, created_at, updated_at)
    values (${team}, ${hashToken(key)}, ${maskKey(key)}, ${now}, ${sealed}, ${maskKey(signing)}, ${now}, ${now}, ${now})
    on conflict do nothing`
  return (yield* find)[0]!
})

/** A team's readable secrets. The first call creates them. */
export const projectSecrets = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<ProjectSecrets, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  // A read does not lock: the row is locked only when it has to be created.
  const [found] = yield* query(sql<Row>`select * from project_secrets where team_id = ${team}`)
  if (found !== undefined) return shown(team, found)
  const now = new Date(yield* Clock.currentTimeMillis)
  return shown(team, yield* transaction(sql)(rowOf(team, now)))
})

const replaceKey = Effect.fnUntraced(function* (team: string, key: string, now: Date) {
  const sql = yield* SqlClient.SqlClient
  const hash = hashToken(key)
  const taken = yield* sql`select from project_secrets where api_key_hash = ${hash} and team_id <> ${team}`
  // The answer does not say whose key it is. That it is taken cannot be hidden, because a key identifies its team.
  if (taken.length > 0) yield* invalid([{ path: "api_key", message: "cannot be used; choose another" }])
  yield* sql`update project_secrets set api_key_hash = ${hash}, api_key_masked = ${maskKey(key)},
    api_key_rotated_at = ${now}, updated_at = ${now} where team_id = ${team}`
  // A new key replaces a revoked one and is active again. The end of the former key was not chosen for it.
  yield* sql`update project_api_keys set status = case when status = 'revoked' then 'active' else status end, revoked_at = null,
      expires_at = null, updated_at = ${now}
    where team_id = ${team} and legacy and (status = 'revoked' or expires_at is not null)`
})

const replaceSigning = Effect.fnUntraced(function* (team: string, row: Row, secret: string, now: Date) {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  // A secret that cannot be decrypted signs nothing any more: replacing it is the repair.
  const former = yield* Effect.catchTag(
    secrets.decrypt(addressOf(team, "signing_secret"), row.signing_secret),
    "SecretUnreadable",
    () => Effect.succeed(null)
  )
  // The same secret again: it was committed, and the answer was lost.
  if (former === secret) return
  const kept = former === null ? null : yield* secrets.encrypt(addressOf(team, "previous_signing_secret"), former)
  const sealed = yield* secrets.encrypt(addressOf(team, "signing_secret"), secret)
  yield* sql`update project_secrets set signing_secret = ${sealed}, signing_secret_masked = ${maskKey(secret)},
    signing_secret_rotated_at = ${now}, previous_signing_secret = ${kept},
    previous_signing_secret_until = ${new Date(now.getTime() + formerMs)}, updated_at = ${now} where team_id = ${team}`
})

/**
 * Replaces a team's secrets. The former API key is invalid at once; the former signing secret signs beside the new one for a day.
 */
export const replaceSecrets = Effect.fnUntraced(function* (
  team: string,
  { api_key, signing_secret }: NewSecrets
): Effect.fn.Return<ProjectSecrets, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const now = new Date(yield* Clock.currentTimeMillis)
      const row = yield* rowOf(team, now)
      if (api_key !== undefined) yield* replaceKey(team, api_key, now)
      if (signing_secret !== undefined) yield* replaceSigning(team, row, signing_secret, now)
      return shown(team, yield* rowOf(team, now))
    })
  )
})

/** The destinations of a team whose deliveries are signed with it. */
export const signedDestinations = Effect.fnUntraced(function* (
  team: string
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`select id from destinations
    where team_id = ${team} and deleted_at is null and config->>'auth_type' = 'SERVICE_SIGNATURE'`
  return rows.map(({ id }) => id)
})

/** A signing secret, and the time (ms) from which it signs no more; null: it is the current one. */
export interface SigningSecretText {
  readonly secret: Redacted.Redacted
  readonly until: number | null
}

/** The secrets that sign a team's deliveries: the current one and, while it is valid, the previous one. */
export const signingSecrets = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<
  ReadonlyArray<SigningSecretText>,
  SqlError.SqlError | SecretUnreadable,
  SqlClient.SqlClient | Secrets
> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<{ signing_secret: string; previous: string | null; until: Date | null }>`
    select signing_secret, case when previous_signing_secret_until > ${now} then previous_signing_secret end as previous,
      previous_signing_secret_until as until
    from project_secrets where team_id = ${team_id}`
  if (row === undefined) return []
  const current = yield* secrets.decrypt(addressOf(team_id, "signing_secret"), row.signing_secret)
  const first = { secret: Redacted.make(current), until: null }
  if (row.previous === null || row.until === null) return [first]
  const former = yield* secrets.decrypt(addressOf(team_id, "previous_signing_secret"), row.previous)
  return [first, { secret: Redacted.make(former), until: row.until.getTime() }]
})
