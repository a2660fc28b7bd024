import { expect, it } from "@effect/vitest"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Fiber } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { globSync } from "node:fs"
import { basename, join } from "node:path"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { emptyDatabase, freshDatabase } from "../../../test/postgres.ts"

/** The files of the migrations, in order. */
const written = globSync("*.ts", { cwd: join(import.meta.dirname, "../src/migrations") })
  .sort()
  .map((file) => ({ migration_id: Number(file.slice(0, 4)), name: basename(file, ".ts").slice(5) }))

it.live("Concurrent processes migrate an empty database exactly once", () =>
  Effect.gen(function* () {
    const url = yield* emptyDatabase
    const database = Database.layer({ url, connections: 1, hotConnections: 1 })
    yield* Effect.forEach([1, 2, 3], () => Effect.provide(migrate, database), { concurrency: "unbounded" })
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* migrate
      expect(yield* sql`select migration_id, name from migrations`).toStrictEqual(written)
      expect(written.map(({ migration_id }) => migration_id)).toStrictEqual(written.map((_, index) => index + 1))
      const today = `events_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}`
      expect(yield* sql`select to_regclass(${today}) is not null as there`).toStrictEqual([{ there: true }])
    }).pipe(Effect.provide(database))
  })
)

/** The last migration that changes the table of sources. Tables that later ones create are dropped before they are repeated. */
const lastOfSources = 70

it.live("Migrations that wait for a running process, which waits for them, are repeated", () =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const client = PgClient.make({ url, maxConnections: 1, startupParameters: { lock_timeout: "0" } })
    const [running, migrating] = [yield* client, yield* client]
    const work = yield* running.reserve
    /** Whether PostgreSQL has ended the migrations, and not the work of the running process. It ends who finds out first. */
    const collide = Effect.gen(function* () {
      yield* work.executeRaw("delete from migrations where migration_id >= $1", [lastOfSources])
      yield* work.executeRaw("drop view counting cascade", [])
      yield* work.executeRaw("drop table runner_loads", [])
      yield* work.executeRaw("begin", [])
      yield* work.executeRaw("lock table sources", [])
      const migrated = yield* Effect.forkChild(Effect.provideService(migrate, SqlClient.SqlClient, migrating))
      const waiting = work.execute(
        "select from pg_locks where relation = 'sources'::regclass and not granted",
        [],
        undefined
      )
      while ((yield* waiting).length === 0) yield* Effect.sleep("10 millis")
      const isGiven = yield* Effect.isSuccess(work.executeRaw("lock table migrations", []))
      yield* work.executeRaw("rollback", [])
      yield* Fiber.join(migrated)
      return isGiven
    })
    while (!(yield* collide));
    expect(yield* migrating`select migration_id, name from migrations`).toStrictEqual(written)
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
)

it.live("A process that finds the migrations locked for longer than its lock timeout waits for them", () =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const client = (lock_timeout: string) =>
      PgClient.make({ url, maxConnections: 1, startupParameters: { lock_timeout } })
    const [holder, waiting] = [yield* client("0"), yield* client("50ms")]
    const lock = yield* holder.reserve
    yield* lock.executeRaw("begin", [])
    yield* lock.executeRaw("lock table migrations", [])
    const refused = yield* Effect.flip(waiting.withTransaction(waiting`lock table migrations`))
    expect(refused.reason._tag).toBe("LockTimeoutError")
    const migrating = yield* Effect.forkChild(Effect.provideService(migrate, SqlClient.SqlClient, waiting))
    // Its wait ends several times meanwhile.
    yield* Effect.sleep("300 millis")
    yield* lock.executeRaw("commit", [])
    yield* Fiber.join(migrating)
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
)
