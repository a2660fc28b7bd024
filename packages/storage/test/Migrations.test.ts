import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { globSync } from "node:fs"
import { basename, join } from "node:path"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { freshDatabase } from "../../../test/postgres.ts"

/** The files of the migrations, in order. */
const written = globSync("*.ts", { cwd: join(import.meta.dirname, "../src/migrations") })
  .sort()
  .map((file) => ({ migration_id: Number(file.slice(0, 4)), name: basename(file, ".ts").slice(5) }))

it.live("an empty database is brought to the schema once, by however many processes start together", () =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const database = Database.layer({ url, connections: 1, hotConnections: 1 })
    yield* Effect.forEach([1, 2, 3], () => Effect.provide(migrate, database), { concurrency: "unbounded" })
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* migrate
      assert.deepStrictEqual(yield* sql`select migration_id, name from migrations`, written)
      assert.deepStrictEqual(
        written.map(({ migration_id }) => migration_id),
        written.map((_, index) => index + 1)
      )
      const today = `events_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}`
      assert.deepStrictEqual(yield* sql`select to_regclass(${today}) is not null as there`, [{ there: true }])
    }).pipe(Effect.provide(database))
  })
)
