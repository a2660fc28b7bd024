import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { StoredConfig } from "../control/Sources.ts"
import { readAuth } from "../secrets/AuthColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"

/** A source as a test request needs it, with its secrets in plain text: nothing of it may be answered. */
interface Tested {
  readonly id: string
  /** The end of its URL: its slug, or otherwise its id. */
  readonly name: string
  readonly type: string
  readonly isDisabled: boolean
  readonly auth_type: string | null
  readonly auth: Schema.JsonObject
}

interface Row {
  readonly id: string
  readonly team_id: string
  readonly slug: string | null
  readonly type: string
  readonly config: StoredConfig
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
}

export const readTestedSource = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Tested, GatewayError | SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const [row] = yield* sql<Row>`
    select s.id, s.team_id, s.slug, s.type, s.config, s.auth, s.disabled_at from sources s
    where s.id = ${id} and s.team_id = ${team} and s.deleted_at is null`
  if (row === undefined) return yield* notFound("source", id)
  const auth = yield* Effect.mapError(readAuth(secrets, "sources", row), () =>
    fail("SIGNATURE_UNAVAILABLE", "the stored secrets of the source cannot be read")
  )
  return {
    id: row.id,
    name: row.slug ?? row.id,
    type: row.type,
    isDisabled: row.disabled_at !== null,
    auth_type: row.config.auth_type,
    auth
  }
})
