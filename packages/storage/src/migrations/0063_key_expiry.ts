import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** When API keys end. The version before does not know the columns: its processes go on accepting a key after its end. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "expiry_set_at": when the end was chosen. Warnings whose time had passed by then are not given.
  `alter table project_api_keys add column expires_at timestamptz, add column expiry_set_at timestamptz`,
  `create index project_api_keys_expiry on project_api_keys (expires_at) where expires_at is not null`,
  `create index project_secrets_former_until on project_secrets (previous_signing_secret_until)
    where previous_signing_secret_until is not null`
]
