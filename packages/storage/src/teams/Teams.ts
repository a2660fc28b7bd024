import { Clock, Effect, Redacted } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { pulledTypes } from "@tidegate/connectors/Connectors"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { addressOf, maskKey, newSigningSecret } from "./ProjectSecrets.ts"
import { hashToken, Secrets } from "../secrets/Secrets.ts"

/** The team that a request without a team acts on. */
export const demoTeam = "tm_demo"

/**
 * The team of unclaimed public bins. It has no key and no members, and nobody may name it: for `People.ts` there is no such team.
 */
export const binsTeam = "tm_bins"

const minKeyLength = 12

/**
 * Creates the demo team and its project secrets: the given API key, of which only the hash is stored, and a random signing
 * secret. A repetition changes nothing. With another key than at the last start, the team's key is replaced and the old one
 * becomes invalid, unless `keepsOther` is true. A key that was rotated since stays: a restart must not make the previous one valid again.
 * Returns whether the given key is the one that the team was last given in this way.
 */
export const bootstrapTeam = Effect.fnUntraced(function* (options: {
  readonly apiKey: Redacted.Redacted
  readonly keepsOther?: boolean
}): Effect.fn.Return<boolean, GatewayError | SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const apiKey = Redacted.value(options.apiKey)
  if (apiKey.length < minKeyLength) {
    yield* invalid([{ path: "api_key", message: `must have at least ${minKeyLength} characters` }])
  }
  const now = new Date(yield* Clock.currentTimeMillis)
  const signingSecret = newSigningSecret()
  const sealed = yield* secrets.encrypt(addressOf(demoTeam, "signing_secret"), signingSecret)
  const replaces = options.keepsOther !== true
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`insert into teams (id, name, created_at) values (${demoTeam}, 'Demo', ${now}) on conflict do nothing`
      yield* sql`
        insert into project_secrets (team_id, configured_key_hash, api_key_hash, api_key_masked, api_key_rotated_at, signing_secret,
          signing_secret_masked, signing_secret_rotated_at, created_at, updated_at)
        values (${demoTeam}, ${hashToken(apiKey)}, ${hashToken(apiKey)}, ${maskKey(apiKey)}, ${now}, ${sealed}, ${maskKey(signingSecret)}, ${now},
          ${now}, ${now})
        on conflict (team_id) do update set configured_key_hash = excluded.api_key_hash,
          api_key_hash = excluded.api_key_hash, api_key_masked = excluded.api_key_masked,
          api_key_rotated_at = excluded.api_key_rotated_at, updated_at = excluded.updated_at
        where project_secrets.configured_key_hash is distinct from excluded.api_key_hash
          and (${replaces}::boolean or project_secrets.configured_key_hash is null)`
      const [stored] = yield* sql<{ configured_key_hash: string }>`
        select configured_key_hash from project_secrets where team_id = ${demoTeam}`
      return stored?.configured_key_hash === hashToken(apiKey)
    })
  )
})

/**
 * Locks a team until the transaction ends, so that changes which count the team's rows see each other's. It is a statement of its
 * own: a count in the same statement would not see what was committed while it waited. Returns whether there is such a team; one
 * in deletion counts as gone.
 */
export const holdTeam = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`select from teams where id = ${team_id} and deleting_since is null for no key update`).length > 0
})

/** The team of a source; null: there is no such source. */
export const teamOfSource = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ team_id: string }>`select team_id from sources where id = ${id} and deleted_at is null`
  return row?.team_id ?? null
})

/** The team of a destination whose events consumers fetch; null: there is no such destination. */
export const teamOfPulled = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ team_id: string }>`
    select team_id from destinations where id = ${id} and type = any(${[...pulledTypes]}) and deleted_at is null`
  return row?.team_id ?? null
})

/** The team of a tunnel destination; null: there is no such destination. */
export const teamOfTunnel = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ team_id: string }>`
    select team_id from destinations where id = ${id} and type = 'CLI' and deleted_at is null`
  return row?.team_id ?? null
})
