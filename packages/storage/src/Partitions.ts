import { Effect, Schedule } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, type Prefix, prefixes } from "@tidegate/model/Ids"
import { isPartitionMissing } from "./Database.ts"

/** The tables partitioned by day, with the prefix of the id they are partitioned by (attempts: their event's). */
const partitioned: ReadonlyArray<readonly [table: string, prefix: Prefix]> = [
  ["requests", prefixes.request],
  ["events", prefixes.event],
  ["attempts", prefixes.event],
  ["ignored_events", prefixes.ignoredEvent],
  ["event_data", prefixes.eventData],
  ["executions", prefixes.execution],
  ["proxy_exchanges", prefixes.proxyExchange]
]

const day = 86_400_000
const daysAhead = 3
const daysBehind = 1

/** Half of a page is kept free for the updates that deliveries make: with it 94 % stay in their page, with a quarter 51 %. */
const fillFactor: Record<string, number> = { events: 50 }

/**
 * Creates the partitions from yesterday to three days ahead of `nowMs`; those that exist stay. A lock makes two
 * processes starting together take turns.
 */
export const ensurePartitions = Effect.fnUntraced(function* (
  nowMs: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const today = Math.floor(nowMs / day) * day
  const existing = new Set(
    (yield* sql<{ name: string }>`select relname as name from pg_class where relispartition and relkind = 'r'`).map(
      (row) => row.name
    )
  )
  const missing: Array<string> = []
  for (const [table, prefix] of partitioned) {
    for (let start = today - daysBehind * day; start <= today + daysAhead * day; start += day) {
      const name = `${table}_${new Date(start).toISOString().slice(0, 10).replaceAll("-", "")}`
      if (existing.has(name)) continue
      const storage = fillFactor[table] === undefined ? "" : ` with (fillfactor = ${fillFactor[table]})`
      missing.push(
        `create table if not exists ${name} partition of ${table} for values from ('${idBound(prefix, start)}') to ('${idBound(
          prefix,
          start + day
        )}')${storage}`
      )
    }
  }
  if (missing.length === 0) return
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select pg_advisory_xact_lock(hashtext('tidegate.partitions'))`
      for (const statement of missing) yield* sql.unsafe(statement)
    })
  )
})

/**
 * Runs one statement that inserts into partitioned tables, outside any transaction. Where the partitions of today are
 * missing (the machine has slept longer than they reach ahead), they are made and the statement runs once more.
 */
export const withPartitions =
  (sql: SqlClient.SqlClient) =>
  <A, E, R>(statement: Effect.Effect<A, E | SqlError.SqlError, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
    Effect.catchIf(statement, isPartitionMissing, () =>
      Effect.clockWith((clock) => ensurePartitions(clock.currentTimeMillisUnsafe())).pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.andThen(statement)
      )
    )

/** Keeps partitions ahead of the clock for as long as the process lives; a failure is logged and tried again. */
export const maintainPartitions = Effect.clockWith((clock) => ensurePartitions(clock.currentTimeMillisUnsafe())).pipe(
  Effect.catch((error) => Effect.logError("partitions could not be created", error)),
  Effect.repeat(Schedule.spaced("1 hour"))
)
