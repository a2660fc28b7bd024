import { expect, layer } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { SqlClient } from "effect/sql"
import { transaction } from "../src/Transaction.ts"
import * as ControlPlane from "./controlPlane.ts"

layer(ControlPlane.layer, { excludeTestServices: true })("Transaction whose session ends", (it) => {
  /** Runs one whose first try loses its session by `losing`; answers what it came to, and how often it was tried. */
  const run = Effect.fnUntraced(function* (losing: Effect.Effect<unknown, unknown, SqlClient.SqlClient>) {
    const sql = yield* SqlClient.SqlClient
    const tries = yield* Ref.make(0)
    const answer = yield* transaction(sql)(
      Effect.gen(function* () {
        if ((yield* Ref.updateAndGet(tries, (count) => count + 1)) === 1) yield* Effect.ignore(losing)
        const [row] = yield* sql<{ answer: number }>`select 1::int4 as answer`
        return row?.answer
      })
    )
    return [answer, yield* Ref.get(tries)]
  })

  it.effect("A transaction is repeated if its session ends during a statement", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      expect(yield* run(sql`select pg_terminate_backend(pg_backend_pid()), pg_sleep(5)`)).toStrictEqual([1, 2])
    })
  )

  it.effect("A transaction is repeated if its session ends between two statements", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const other = yield* sql.reserve
      const endsIt = Effect.gen(function* () {
        const [row] = yield* sql<{ pid: number }>`select pg_backend_pid() as pid`
        yield* other.executeUnprepared("select pg_terminate_backend($1::int4, 5000)", [row?.pid], undefined)
      })
      expect(yield* run(endsIt)).toStrictEqual([1, 2])
    })
  )
})
