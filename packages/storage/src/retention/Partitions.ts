import { Effect, Schedule } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { idBound } from "@tidegate/model/Ids"
import { isPartitionMissing } from "../Database.ts"
import { indexPartitions } from "./PartitionIndexes.ts"
import { growing, type GrowingTable } from "../Tables.ts"

export const day = 86_400_000
const daysAhead = 3
const daysBehind = 1

export const startOfDay = (ms: number): number => Math.floor(ms / day) * day

const partitionName = (table: GrowingTable, start: number): string =>
  `${table.name}_${new Date(start).toISOString().slice(0, 10).replaceAll("-", "")}`

/** The id range of a day, as text for a statement: the first id of the day, and of the next day. */
export const dayBounds = ({ by: [, prefix] }: GrowingTable, start: number): readonly [from: string, to: string] => [
  `'${idBound(prefix, start)}'`,
  `'${idBound(prefix, start + day)}'`
]

/** Attaches `name` as the partition of that day. It does not block readers or writers of the table. */
export const attach = (sql: SqlClient.SqlClient, table: GrowingTable, start: number, name: string) => {
  const [from, to] = dayBounds(table, start)
  return sql.unsafe(`alter table ${table.name} attach partition ${name} for values from (${from}) to (${to})`)
}

/**
 * Makes the primary key the youngest index of a new day. While a day is known to be empty, all of its indexes cost the planner
 * the same, and it prefers the youngest one. A statement that is planned then must find ids by the primary key and not by an
 * index that has the id in a later column: it would still use that plan when the day is full.
 */
const keyLast = (sql: SqlClient.SqlClient, { key }: GrowingTable, name: string) =>
  sql.unsafe(
    `alter table ${name} drop constraint ${name}_pkey, add constraint ${name}_pkey primary key (${key.join(", ")})`
  )

/**
 * Creates the partitions from yesterday to three days ahead of `nowMs`; existing ones stay. An advisory lock serializes processes
 * that start together. A partition is built as a separate table and then attached: `create … partition of` would wait for every
 * reader of the table, and ingress would wait behind it.
 */
export const ensurePartitions = Effect.fnUntraced(function* (
  nowMs: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const today = startOfDay(nowMs)
  const wanted = growing.flatMap((table) =>
    Array.from({ length: daysBehind + 1 + daysAhead }, (_, index) => {
      const start = today + (index - daysBehind) * day
      return { table, start, name: partitionName(table, start) }
    })
  )
  const missing = Effect.gen(function* () {
    const existing = new Set((yield* partitions).map(({ name }) => name))
    return wanted.filter(({ name }) => !existing.has(name))
  })
  if ((yield* missing).length === 0) return
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select pg_advisory_xact_lock(hashtext('tidegate.partitions'))`
      for (const { name, start, table } of yield* missing) {
        const storage = table.fillFactor === undefined ? "" : ` with (fillfactor = ${table.fillFactor})`
        yield* sql.unsafe(`create table if not exists ${name} (like ${table.name} including all)${storage}`)
        yield* keyLast(sql, table, name)
        yield* attach(sql, table, start, name)
      }
    })
  )
})

/**
 * Runs one statement or a whole transaction that inserts into partitioned tables, outside any other transaction. When today's
 * partitions are missing (the machine has slept for longer than they reach ahead), they are created and it runs once more.
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

/** Creates partitions ahead of time and indexes them, for as long as the process lives. A failure is logged and tried again. */
export const maintainPartitions = Effect.clockWith((clock) => ensurePartitions(clock.currentTimeMillisUnsafe())).pipe(
  Effect.catch((error) => Effect.logError("partitions could not be created", error)),
  Effect.andThen(
    Effect.catch(indexPartitions, (error) => Effect.logWarning("days could not be indexed yet; lists read on", error))
  ),
  Effect.repeat(Schedule.spaced("1 hour"))
)

/** One day of a table. */
export interface Partition {
  readonly table: GrowingTable
  readonly name: string
  /** When its day begins (Unix ms). */
  readonly start: number
  /** Whether all of its rows are without payloads. */
  readonly isPruned: boolean
}

/** The comment of a partition without payloads in the catalogue. It is written in the same transaction, so it is always true. */
export const prunedMark = "without payloads"

const dated = /_(\d{4})(\d\d)(\d\d)$/

/** All partitions, oldest day first; the tables of a day in their own order. */
export const partitions: Effect.Effect<ReadonlyArray<Partition>, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ parent: string; name: string; note: string | null }>`
      select p.relname as parent, c.relname as name, obj_description(c.oid, 'pg_class') as note
      from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
      where p.relkind = 'p' and c.relkind = 'r' and p.relnamespace = current_schema()::regnamespace`
    return growing
      .flatMap((table) =>
        rows.flatMap(({ name, note, parent }): ReadonlyArray<Partition> => {
          const [, y, m, d] = dated.exec(name) ?? []
          if (parent !== table.name || y === undefined) return []
          return [{ table, name, start: Date.UTC(Number(y), Number(m) - 1, Number(d)), isPruned: note === prunedMark }]
        })
      )
      .sort((a, b) => a.start - b.start)
  }
)

/** How long a change of partitions waits for its table while everyone else waits behind it (see docs/retention.md). */
const lockPatience = "50ms"
const tries = 30

const isLockTimeout = (error: unknown): boolean =>
  SqlError.isSqlError(error) && error.reason._tag === "LockTimeoutError"

/**
 * Runs `change` in a transaction that locks the table. It waits for the lock only a moment and then gives up and tries again,
 * because everyone who uses the table meanwhile waits behind it. When the table is never free, the change fails.
 */
const exclusively = Effect.fnUntraced(function* <A, E, R>(table: GrowingTable, change: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql
    .withTransaction(
      sql
        .unsafe(`set local lock_timeout = '${lockPatience}'`)
        .pipe(
          Effect.andThen(sql.unsafe(`lock table only ${table.name} in access exclusive mode`)),
          Effect.andThen(change)
        )
    )
    .pipe(
      Effect.retry({ while: isLockTimeout, times: tries, schedule: Schedule.jittered(Schedule.spaced("1 second")) })
    )
})

const setAside = (sql: SqlClient.SqlClient, { name, table }: Partition) =>
  Effect.andThen(
    sql.unsafe(`alter table ${table.name} detach partition ${name}`),
    sql.unsafe(`alter table ${name} rename to ${name}_detached`)
  )

/**
 * Drops a partition, unless `isNeeded` finds that something still waits for its rows; that is checked when nothing new can begin
 * to wait. The partition is detached first, because dropping gigabytes takes longer than ingress may wait. Returns whether it is
 * gone.
 */
export const dropPartition = Effect.fnUntraced(function* <E, R>(
  partition: Partition,
  isNeeded: Effect.Effect<boolean, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  const detached = yield* exclusively(
    partition.table,
    Effect.flatMap(isNeeded, (needed) => (needed ? Effect.succeed(false) : Effect.as(setAside(sql, partition), true)))
  )
  if (detached) yield* sql.unsafe(`drop table if exists ${partition.name}_detached`)
  return detached
})

/** Replaces a partition by the table `name`, under the same conditions; then none of its rows has a payload. */
export const replacePartition = Effect.fnUntraced(function* <E, R>(
  partition: Partition,
  name: string,
  isNeeded: Effect.Effect<boolean, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  const { start, table } = partition
  const swapped = yield* exclusively(
    table,
    Effect.gen(function* () {
      if (yield* isNeeded) return false
      yield* setAside(sql, partition)
      yield* sql.unsafe(`alter table ${name} rename to ${partition.name}`)
      yield* attach(sql, table, start, partition.name)
      yield* sql.unsafe(`comment on table ${partition.name} is '${prunedMark}'`)
      return true
    })
  )
  if (swapped) yield* sql.unsafe(`drop table if exists ${partition.name}_detached`)
  return swapped
})

/** Drops the remains of an interrupted run: detached days and copies of days. */
export const dropLeftovers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string }>`
    select relname as name from pg_class
    where relkind = 'r' and not relispartition and relnamespace = current_schema()::regnamespace
      and relname ~ ${`^(${growing.map(({ name }) => name).join("|")})_\\d{8}_(detached|copy)$`}`
  for (const { name } of rows) yield* sql.unsafe(`drop table if exists ${name}`)
  return rows.length
})

/** The tables of today and tomorrow that do not exist, by name. */
export const missingPartitions = Effect.fnUntraced(function* (
  nowMs: number
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const today = startOfDay(nowMs)
  const present = new Set((yield* partitions).map(({ name }) => name))
  return growing
    .flatMap((table) => [partitionName(table, today), partitionName(table, today + day)])
    .filter((name) => !present.has(name))
})
