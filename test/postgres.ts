import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { randomBytes } from "node:crypto"
import { inject } from "vitest"

const database = (template: string): Effect.Effect<Redacted.Redacted, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = inject("postgresUrl")
    const name = `test_${randomBytes(8).toString("hex")}`
    // The files of a small template are copied in half the time that writing each of its pages to the log takes.
    yield* Effect.acquireRelease(run(server, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`), () =>
      Effect.orDie(drop(server, name))
    )
    const url = new URL(server)
    url.pathname = name
    return Redacted.make(url.href)
  })

/**
 * A database of the suite's own on the server of this run, so that no suite sees what another does. It has the schema and no rows. Gives its URL; the
 * database is dropped when the scope closes, whoever is still connected.
 *
 * Usually for a whole suite: `layer(...)` over it, or `freshDatabase` with the scope of `it.effect` for a single test.
 */
export const freshDatabase = Effect.suspend(() => database(inject("templateDatabase")))

/** The same without the schema: for what makes it. */
export const emptyDatabase = database("template1")

/** A client of a fresh database, which lives as long as the layer. */
export const layer: Layer.Layer<PgClient.PgClient | SqlClient, SqlError> = Layer.unwrap(
  Effect.map(freshDatabase, (url) => PgClient.layer({ url }))
)

/**
 * Not by `WITH (FORCE)`, which wants to end an autovacuum worker as well, and may not. Without it, the server ends those itself, and waits
 * for the others up to 5 s. It looks for them ten times a second only, so they are waited for here first.
 */
const drop = (server: string, name: string) =>
  connected(
    server,
    Effect.fnUntraced(function* (connection) {
      yield* connection.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
      for (let looks = 0; looks < maxLooks; looks++) {
        const { rows } = yield* connection.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND usename = current_user`
        )
        if (rows.length === 0) break
      }
      yield* connection.query(`DROP DATABASE ${name}`)
    })
  ).pipe(Effect.retry({ times: 12 }))

const maxLooks = 100

const run = (url: string, statement: string) => connected(url, (connection) => connection.query(statement))

const connected = <A, E>(
  url: string,
  use: (connection: PgConnection.PgConnection) => Effect.Effect<A, E>
): Effect.Effect<A, E | SqlError> => Effect.scoped(Effect.flatMap(PgConnection.make({ url: Redacted.make(url) }), use))
