/** The PostgreSQL server that all subjects share, with a new database for each run. */
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { type EmbeddedPostgresError, start as startServer } from "@tidegate/embedded-postgres/EmbeddedPostgres"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"

/** A running server with one administrative connection, outside of the measured databases. */
export interface Postgres {
  readonly pid: number
  readonly version: string
  /** The database of a gateway that uses the server as its embedded one, for the superuser. */
  readonly url: Redacted.Redacted
  /** Creates an empty database and returns its URL. Closing the scope drops it, even if clients are connected. */
  readonly database: (name: string) => Effect.Effect<string, SqlError, Scope.Scope>
  /** Writes all changed pages to disk, so that no run pays for the previous one. */
  readonly checkpoint: Effect.Effect<void, SqlError>
  /** Statements that clients have sent to a database since it was created, `BEGIN` and `COMMIT` included. */
  readonly statements: (database: string) => Effect.Effect<number, SqlError>
}

/**
 * Starts the embedded server in the empty directory `home`, with the same settings as under a gateway. It is started twice: the
 * extension that counts statements is loaded at a start, and set up on a running server.
 */
export const start = Effect.fnUntraced(function* (
  home: string
): Effect.fn.Return<Postgres, EmbeddedPostgresError | SqlError, Scope.Scope> {
  yield* Effect.scoped(
    Effect.gen(function* () {
      const { superuserUrl: url } = yield* startServer({ home })
      const connection = yield* PgConnection.make({ url })
      yield* connection.query("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    })
  )
  const server = yield* startServer({ home })
  const connection = yield* PgConnection.make({ url: server.superuserUrl })
  yield* connection.query("CREATE EXTENSION pg_stat_statements")
  const version = yield* connection.queryValues("SHOW server_version")
  return {
    pid: server.pid,
    url: server.superuserUrl,
    version: String(version[0]?.[0]),
    database: (name) =>
      Effect.acquireRelease(connection.query(`CREATE DATABASE ${name}`, [], false), () =>
        Effect.orDie(connection.query(`DROP DATABASE ${name} WITH (FORCE)`, [], false))
      ).pipe(
        Effect.map(() => Object.assign(new URL(Redacted.value(server.superuserUrl)), { pathname: `/${name}` }).href)
      ),
    checkpoint: Effect.asVoid(connection.query("CHECKPOINT")),
    statements: (database) =>
      connection
        .queryValues(
          `SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements
           JOIN pg_database ON pg_database.oid = dbid WHERE datname = $1`,
          [database]
        )
        .pipe(Effect.map((rows) => Number(rows[0]?.[0])))
  }
})
