import { getPriority } from "node:os"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { asList, asReport } from "../src/FairReads.ts"
import { reportPriority } from "../src/LowPriority.ts"

/** The server process of the caller's session, its priority, and how many parallel workers may help it. */
const session = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ pid: number; workers: string }>`
    select pg_backend_pid() as pid, current_setting('max_parallel_workers_per_gather') as workers`
  return { ...row!, priority: getPriority(row!.pid) }
})

const withDatabase = <A, E>(isEmbedded: boolean, of: () => Effect.Effect<A, E, Database.Database>) =>
  Effect.flatMap(freshDatabase, (url) =>
    Effect.provide(of(), Database.layer({ url, connections: 2, reportConnections: 2, isEmbedded }))
  )

it.live("Reports of an embedded server run at a low priority and without parallel workers, and lists as before", () =>
  withDatabase(true, () =>
    Effect.gen(function* () {
      const [list, ...reports] = yield* Effect.all(
        [asList("tm_a")(session), ...["tm_a", "tm_b"].map((team) => asReport(team)(session))],
        { concurrency: "unbounded" }
      )
      expect(list).toMatchObject({ priority: getPriority() })
      expect(list.workers).not.toBe("0")
      expect(reports.map(({ priority, workers }) => [priority, workers])).toEqual([
        [reportPriority, "0"],
        [reportPriority, "0"]
      ])
    })
  )
)

it.live("Reports of another server keep their priority and their parallel workers", () =>
  withDatabase(false, () =>
    Effect.gen(function* () {
      const report = yield* asReport("tm_a")(session)
      expect(report.priority).toBe(getPriority())
      expect(report.workers).not.toBe("0")
    })
  )
)

it.live("A report has one session, in which no transaction is open", () =>
  withDatabase(true, () =>
    Effect.gen(function* () {
      const found = yield* asReport("tm_a")(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const number = sql<{ pid: number; number: string }>`
            select pg_backend_pid() as pid, pg_current_xact_id()::text as number`
          const together = yield* Effect.all([number, number], { concurrency: "unbounded" })
          return [...together.flat(), ...(yield* number)]
        })
      )
      expect(new Set(found.map(({ pid }) => pid)).size).toBe(1)
      expect(new Set(found.map(({ number }) => number)).size).toBe(3)
    })
  )
)

it.live("A report that is interrupted ends its statement, and the next report gets a connection", () =>
  withDatabase(true, () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sleeping = sql<{ pid: number }>`
        select pid from pg_stat_activity where state = 'active' and query = 'select pg_sleep(50)'
          and datname = current_database()`
      for (const _ of [1, 2, 3]) {
        const report = yield* Effect.forkChild(
          asReport("tm_a")(Effect.flatMap(SqlClient.SqlClient, (own) => own`select pg_sleep(50)`))
        )
        yield* Effect.repeat(sleeping, { until: (rows) => rows.length === 1 })
        yield* Fiber.interrupt(report)
        yield* Effect.repeat(sleeping, { until: (rows) => rows.length === 0 })
      }
      expect(yield* asReport("tm_a")(session)).toMatchObject({ priority: reportPriority })
    })
  )
)
