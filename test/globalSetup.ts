import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import * as Database from "../packages/storage/src/Database.ts"
import { migrate } from "../packages/storage/src/Migrations.ts"
import { start } from "../packages/embedded-postgres/src/EmbeddedPostgres.ts"
import { temporaryFolder } from "./temporaryFolder.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** The PostgreSQL server of this run, by a database that may be connected to for making others. */
    readonly postgresUrl: string
    /** A database on it that has the schema and nothing else: what others are copied from. */
    readonly templateDatabase: string
  }
}

/**
 * One PostgreSQL server for the whole run: the one of `TEST_DATABASE_URL`, or with `TEST_POSTGRES=container` one in a
 * container, or else an embedded one that starts empty and leaves nothing behind.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const scope = Scope.makeUnsafe()
  const [url, template] = await Effect.runPromise(
    Effect.flatMap(serverUrl, (url) => Effect.map(migrated(url), (template) => [url, template] as const)).pipe(
      Scope.provide(scope)
    )
  )
  project.provide("postgresUrl", Redacted.value(url))
  project.provide("templateDatabase", template)
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}

/** Migrates a database once for all suites: a copy takes a tenth of the time. */
const migrated = Effect.fnUntraced(function* (server: Redacted.Redacted) {
  const name = `test_template_${randomBytes(8).toString("hex")}`
  yield* Effect.acquireRelease(run(server, `create database ${name}`), () =>
    Effect.orDie(run(server, `drop database ${name}`))
  )
  const url = new URL(Redacted.value(server))
  url.pathname = name
  yield* Effect.provide(migrate, Database.layer({ url: Redacted.make(url.href), connections: 1 }))
  return name
})

const run = (url: Redacted.Redacted, statement: string) =>
  PgConnection.make({ url }).pipe(
    Effect.flatMap((connection) => connection.query(statement)),
    Effect.scoped
  )

const embedded = Effect.gen(function* () {
  // Its files are deleted at the end, and no machine fails meanwhile.
  const { superuserUrl, url } = yield* start({ home: join(yield* temporaryFolder, "postgres"), disposable: true })
  // The suites go by the role that a gateway has; only that they make databases of their own is beyond it.
  const connection = yield* PgConnection.make({ url: superuserUrl })
  yield* connection.query("alter role gateway createdb")
  // Each database that is made or dropped writes a checkpoint. With this setting, the log would have each page once more after each of them.
  yield* connection.query("alter system set full_page_writes = off")
  yield* connection.query("select pg_reload_conf()")
  return url
})

const container = Effect.gen(function* () {
  const { getContainerRuntimeClient } = yield* Effect.promise(() => import("testcontainers"))
  const runtime = yield* Effect.exit(Effect.tryPromise(() => getContainerRuntimeClient()))
  if (Exit.isFailure(runtime)) {
    yield* Effect.sync(() =>
      process.stdout.write("No container runtime here: the suites use the embedded PostgreSQL.\n")
    )
    return yield* embedded
  }
  const { PostgreSqlContainer } = yield* Effect.promise(() => import("@testcontainers/postgresql"))
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => new PostgreSqlContainer("postgres:18").withCommand(["-c", "max_connections=200"]).start()),
    (server) => Effect.promise(() => server.stop())
  )
  return Redacted.make(server.getConnectionUri())
})

const serverUrl = Effect.suspend(() => {
  const given = process.env["TEST_DATABASE_URL"]
  if (given !== undefined && given !== "") return Effect.succeed(Redacted.make(given))
  return process.env["TEST_POSTGRES"] === "container" ? container : embedded
})
