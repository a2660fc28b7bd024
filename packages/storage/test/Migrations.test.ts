import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { globSync } from "node:fs"
import { basename, join } from "node:path"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { emptyDatabase } from "../../../test/postgres.ts"

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
