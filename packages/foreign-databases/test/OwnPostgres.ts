import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import { Effect, Redacted, type Scope } from "effect"
import type { SqlError } from "effect/sql"
import { chmodSync, chownSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { start } from "../../embedded-postgres/src/EmbeddedPostgres.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

/** A certificate for `target.test`, its subdomains and 127.0.0.1, and the authority that has signed it. */
const certificate = (name: string): string =>
  readFileSync(new URL(`../../egress/test/fixtures/${name}.pem`, import.meta.url), "utf8")

export const authority = certificate("authority")

/** Somebody else's PostgreSQL, which speaks TLS too. */
export interface OwnPostgres {
  readonly port: number
  readonly database: string
  /** Whoever may do everything there. */
  readonly superuser: string
  readonly password: string
  /** In a session that holds locks; the other one sees what waits for them. */
  readonly locking: (statement: string) => Effect.Effect<unknown, SqlError.SqlError>
  readonly query: (statement: string) => Effect.Effect<ReadonlyArray<Record<string, unknown>>, SqlError.SqlError>
}

export const ownPostgres: Effect.Effect<OwnPostgres, unknown, Scope.Scope> = Effect.gen(function* () {
  const home = join(yield* temporaryFolder, "postgres")
  const { port, superuserUrl } = yield* start({ home })
  const { password, pathname, username } = new URL(Redacted.value(superuserUrl))
  const data = join(home, "data")
  const { gid, uid } = statSync(data)
  for (const [file, text] of [
    ["server.crt", certificate("valid")],
    ["server.key", certificate("key")]
  ] as const) {
    const path = join(data, file)
    writeFileSync(path, text)
    chmodSync(path, 0o600)
    chownSync(path, uid, gid)
  }
  const session: PgConnection = yield* make({ url: superuserUrl })
  const other: PgConnection = yield* make({ url: superuserUrl })
  const query = (statement: string) => Effect.map(session.query(statement), ({ rows }) => rows)
  yield* query("alter system set ssl = on")
  yield* query("select pg_reload_conf()")
  return {
    port,
    database: pathname.slice(1),
    superuser: username,
    password: decodeURIComponent(password),
    locking: other.query,
    query
  }
})
