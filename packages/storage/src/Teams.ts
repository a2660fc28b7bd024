import { randomBytes } from "node:crypto"
import { Clock, Effect, Redacted } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { maskSecret } from "@tidegate/signatures/Masking"
import { gathered } from "./Gathered.ts"
import { hashToken, type SecretAddress, Secrets, type SecretUnreadable } from "./Secrets.ts"
import { query } from "./Transaction.ts"

/** The team that a request without a team acts on. */
export const demoTeam = "tm_demo"

const leastKeyLength = 12

/** A key or token as it is shown: its prefix, and the mask of what follows. */
const maskKey = (value: string): string => {
  const prefix = /^[a-z]{2,8}_/.exec(value)?.[0] ?? ""
  return prefix + maskSecret(value.slice(prefix.length))
}

const addressOf = (team_id: string, column: "signing_secret" | "previous_signing_secret"): SecretAddress => ({
  team_id,
  table: "project_secrets",
  column,
  id: team_id
})

/**
 * Makes the demo team and its project secrets: the given API key, of which only the hash is kept, and a random signing
 * secret. Repeating it changes nothing; with another key, the team's key is replaced and the old one no longer valid.
 */
export const bootstrapTeam = Effect.fnUntraced(function* (options: {
  readonly apiKey: Redacted.Redacted
}): Effect.fn.Return<void, GatewayError | SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const apiKey = Redacted.value(options.apiKey)
  if (apiKey.length < leastKeyLength) {
    yield* invalid([{ path: "api_key", message: `must have at least ${leastKeyLength} characters` }])
  }
  const now = new Date(yield* Clock.currentTimeMillis)
  const signingSecret = `gws_${randomBytes(32).toString("hex")}`
  const sealed = yield* secrets.encrypt(addressOf(demoTeam, "signing_secret"), signingSecret)
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`insert into teams (id, name, created_at) values (${demoTeam}, 'Demo', ${now}) on conflict do nothing`
      yield* sql`
        insert into project_secrets (team_id, api_key_hash, api_key_masked, api_key_rotated_at, signing_secret,
          signing_secret_masked, signing_secret_rotated_at, created_at, updated_at)
        values (${demoTeam}, ${hashToken(apiKey)}, ${maskKey(apiKey)}, ${now}, ${sealed}, ${maskKey(signingSecret)}, ${now},
          ${now}, ${now})
        on conflict (team_id) do update set api_key_hash = excluded.api_key_hash, api_key_masked = excluded.api_key_masked,
          api_key_rotated_at = excluded.api_key_rotated_at, updated_at = excluded.updated_at
        where project_secrets.api_key_hash <> excluded.api_key_hash`
    })
  )
})

/** Finds the team that an API key belongs to, or null. Keys are found by their hash, so a look-up tells nothing by its time. */
export const teamsByApiKey: Effect.Effect<
  (apiKey: string) => Effect.Effect<string | null, GatewayError>,
  never,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const teams = yield* gathered((hashes) =>
    Effect.map(
      sql<{ api_key_hash: string; team_id: string }>`
        select api_key_hash, team_id from project_secrets where api_key_hash = any(${[...hashes]})`,
      (rows) => new Map(rows.map((row) => [row.api_key_hash, row.team_id]))
    )
  )
  return (apiKey) => {
    const hash = hashToken(apiKey)
    return query(Effect.map(teams([hash]), (found) => found.get(hash) ?? null))
  }
})

/** The secrets that sign a team's deliveries: the current one, then the one before it for as long as that is valid. */
export const signingSecrets = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<
  ReadonlyArray<Redacted.Redacted>,
  SqlError.SqlError | SecretUnreadable,
  SqlClient.SqlClient | Secrets
> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<{ signing_secret: string; previous: string | null }>`
    select signing_secret, case when previous_signing_secret_until > ${now} then previous_signing_secret end as previous
    from project_secrets where team_id = ${team_id}`
  if (row === undefined) return []
  const current = yield* secrets.decrypt(addressOf(team_id, "signing_secret"), row.signing_secret)
  const previous =
    row.previous === null ? [] : [yield* secrets.decrypt(addressOf(team_id, "previous_signing_secret"), row.previous)]
  return [current, ...previous].map((secret) => Redacted.make(secret))
})
