import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { freshDatabase } from "../../../test/postgres.ts"

it.live("an empty database is brought to the schema once, by however many processes start together", () =>
  Effect.gen(function* () {
    const url = yield* freshDatabase
    const database = Database.layer({ url, connections: 1, hotConnections: 1 })
    yield* Effect.forEach([1, 2, 3], () => Effect.provide(migrate, database), { concurrency: "unbounded" })
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* migrate
      assert.deepStrictEqual(yield* sql`select migration_id, name from migrations`, [
        { migration_id: 1, name: "initial" },
        { migration_id: 2, name: "front_doors" },
        { migration_id: 3, name: "presented" },
        { migration_id: 4, name: "source_slugs" },
        { migration_id: 5, name: "retention" },
        { migration_id: 6, name: "commands" }
      ])
      const today = `events_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}`
      assert.deepStrictEqual(yield* sql`select to_regclass(${today}) is not null as there`, [{ there: true }])
    }).pipe(Effect.provide(database))
  })
)
