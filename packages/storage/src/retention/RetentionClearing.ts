import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import { dayBounds, type Partition, replacePartition } from "./Partitions.ts"
import type { GrowingTable } from "../Tables.ts"

/*
 * Removes payloads (or rows) from one day of one table. When they are due for every team, the day is copied without them and the
 * copy replaces it: updating the rows would leave their pages as large as they were, because nothing new is ever written to an
 * old day. When other teams keep theirs, the rows of the rest are cleared in batches.
 */

const rowsAtOnce = 5_000

/** Goes through a table along its primary key, so many rows at a time. After each step it rests for as long as the step took. */
const alongKey = Effect.fnUntraced(function* <E, R>(
  { name, table }: Partition,
  step: (range: string, bounds: ReadonlyArray<unknown>) => Effect.Effect<unknown, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  const key = table.key.join(", ")
  const places = (first: number) => table.key.map((_, index) => `$${first + index}`).join(", ")
  let lower = "true"
  let bounds: ReadonlyArray<unknown> = []
  while (true) {
    const began = yield* Clock.currentTimeMillis
    const [end] = yield* sql.unsafe<Record<string, unknown>>(
      `select ${key} from ${name} where ${lower} order by ${key} offset ${rowsAtOnce - 1} limit 1`,
      bounds
    )
    if (end === undefined) return yield* step(lower, bounds)
    const last = table.key.map((column) => end[column])
    yield* step(`${lower} and (${key}) <= (${places(bounds.length + 1)})`, [...bounds, ...last])
    yield* Effect.sleep((yield* Clock.currentTimeMillis) - began)
    lower = `(${key}) > (${places(1)})`
    bounds = last
  }
})

/** Runs a statement without a time-out, for a large day. It holds no lock that others need. */
export const unhurried = Effect.fnUntraced(function* <A, E, R>(statement: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(Effect.andThen(sql.unsafe("set local statement_timeout = '1h'"), statement))
})

/**
 * Replaces a partition by a copy without payloads, unless `isNeeded`; returns whether it did. Nothing writes to the day
 * meanwhile, because nothing waits for it. An interrupted copy is dropped and started again by the next run.
 */
export const rewriteWithoutPayloads = Effect.fnUntraced(function* <E, R>(
  partition: Partition,
  isNeeded: Effect.Effect<boolean, E, R>
) {
  const sql = yield* SqlClient.SqlClient
  const { name, start, table } = partition
  const copy = `${name}_copy`
  const [from, to] = dayBounds(table, start)
  const [idColumn] = table.by
  // With this check the database need not read every row when the copy is attached.
  yield* sql.unsafe(
    `create table ${copy} (like ${table.name} including defaults including storage including compression,
      primary key (${table.key.join(", ")}), check (${idColumn} >= ${from} and ${idColumn} < ${to}))`
  )
  const columns = (yield* sql<{ name: string }>`
    select attname as name from pg_attribute where attrelid = ${name}::regclass and attnum > 0 and not attisdropped
    order by attnum`).map((column) => column.name)
  const values = columns.map((column) => table.payload?.[column] ?? column)
  yield* alongKey(partition, (range, bounds) =>
    sql.unsafe(
      `insert into ${copy} (${columns.join(", ")}) select ${values.join(", ")} from ${name} where ${range}`,
      bounds
    )
  )
  for (const definition of yield* indexesOf(table)) yield* unhurried(sql.unsafe(`create index on ${copy}${definition}`))
  yield* unhurried(sql.unsafe(`analyze ${copy}`))
  const [counted] = yield* unhurried(
    sql.unsafe<{ all: boolean }>(`select (select count(*) from ${name}) = (select count(*) from ${copy}) as all`)
  )
  if (counted?.all !== true) {
    // Fails closed: records are kept rather than lost.
    yield* Effect.logError("a day's copy without payloads has not all of its rows", { partition: name })
    yield* sql.unsafe(`drop table ${copy}`)
    return false
  }
  const replaced = yield* replacePartition(partition, copy, isNeeded)
  if (!replaced) yield* sql.unsafe(`drop table ${copy}`)
  return replaced
})

/** The indexes of a table's partitions without the primary key: the part of the definition after the table's name. */
const indexesOf = Effect.fnUntraced(function* ({ name }: GrowingTable) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ definition: string }>`
    select substring(pg_get_indexdef(indexrelid) from ' USING .*$') as definition from pg_index
    where indrelid = ${name}::regclass and not indisprimary`
  return rows.map(({ definition }) => definition)
})

/** Deletes the rows of a partition that belong to no keeper. */
export const deleteRows = Effect.fnUntraced(function* (partition: Partition, keepers: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const { name } = partition
  yield* alongKey(partition, (range, bounds) =>
    sql.unsafe(`delete from ${name} where ${range} and team_id <> all($${bounds.length + 1})`, [
      ...bounds,
      Columns.text(keepers)
    ])
  )
})

/** Removes the payloads of the rows of a partition that belong to no keeper. */
export const pruneRows = Effect.fnUntraced(function* (partition: Partition, keepers: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const { name, table } = partition
  const payload = Object.entries(table.payload ?? {})
  if (payload.length === 0) return
  const set = payload.map(([column, value]) => `${column} = ${value}`).join(", ")
  const isThere = payload.map(([column, value]) => `${column} is distinct from ${value}`).join(" or ")
  yield* alongKey(partition, (range, bounds) =>
    sql.unsafe(`update ${name} set ${set} where ${range} and team_id <> all($${bounds.length + 1}) and (${isThere})`, [
      ...bounds,
      Columns.text(keepers)
    ])
  )
})
