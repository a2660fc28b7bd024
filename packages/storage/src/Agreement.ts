import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Secrets } from "./secrets/Secrets.ts"

/** Whether this process agrees with the others on what all processes of one database must share. */
export interface Agreement {
  /** Whether this process's keys decrypt what the others encrypt. */
  readonly keysFit: boolean
  /** The number of shards, fixed for the life of the database. */
  readonly shards: number
}

/** The PostgreSQL server's version, as its number: 150004 is 15.4. */
export const serverVersion: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ version: string }>`select current_setting('server_version_num') as version`
  return Number(row?.version)
})

const canary = { team_id: "", table: "settings", column: "value", id: "secret_canary" }

/** Reads the agreement. The first process of a database creates it, from its own keys and this number of shards. */
export const agreement = Effect.fnUntraced(function* (
  shards: number
): Effect.fn.Return<Agreement, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const sealed = yield* secrets.encrypt(canary, "tidegate")
  yield* sql`insert into settings (name, value) values ('secret_canary', ${sealed}), ('shards', ${String(shards)})
    on conflict do nothing`
  const rows = yield* sql<{ name: string; value: string }>`select name, value from settings`
  const stored = new Map(rows.map((row) => [row.name, row.value]))
  return {
    keysFit: yield* Effect.isSuccess(secrets.decrypt(canary, stored.get("secret_canary") ?? "")),
    shards: Number(stored.get("shards"))
  }
})

/** Whether these keys decrypt what the processes of this database encrypt. It only reads, and creates no agreement. */
export const keysFit: Effect.Effect<boolean, SqlError.SqlError, SqlClient.SqlClient | Secrets> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ value: string }>`select value from settings where name = ${canary.id}`
    return row !== undefined && (yield* Effect.isSuccess((yield* Secrets).decrypt(canary, row.value)))
  }
)
