import { layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { expect } from "vitest"
import { emptyDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { objectionTo } from "../src/Fitness.ts"
import { isWaiting } from "./isWaiting.ts"

const empty = Layer.unwrap(Effect.map(emptyDatabase, (url) => Database.layer({ url, connections: 3 })))

layer(empty, { excludeTestServices: true })("Check whether a database is the gateway's", (it) => {
  it.effect("Database whose first migrations are committed during the check is accepted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [locked, seen] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      yield* sql`create table migrations (migration_id int, name text)`
      const migrating = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`lock table migrations`
            yield* sql`create table settings (name text, value text)`
            yield* sql`insert into migrations values (1, 'initial')`
            yield* Deferred.succeed(locked, undefined)
            yield* Deferred.await(seen)
          })
        )
      )
      yield* Deferred.await(locked)
      // It sees only the table of migrations, and waits to read it.
      const check = yield* Effect.forkChild(objectionTo)
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* Deferred.succeed(seen, undefined)
      yield* Fiber.join(migrating)
      expect(yield* Fiber.join(check)).toBeNull()
    })
  )
})
