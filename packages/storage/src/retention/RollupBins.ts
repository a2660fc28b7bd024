import { randomInt } from "node:crypto"
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import { measureOfQuarter, quarterMeasure, quartersFrom } from "../journal/CountStatement.ts"

const fewBins = 6
const spanMs = 24 * 3_600_000

/**
 * A single id is compared by itself, because such a statement is planned once. For a list the server plans anew each time, since
 * lists differ in length, and planning takes longer than the rest. For the same reason our own measures are literals of the
 * statement.
 */
const keyed = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) =>
  ids.length === 1 ? sql`key_id = ${ids[0]!}` : sql`key_id = any(${[...ids]})`

/** The counts of an id under a measure. */
export type BinsOf = (id: string) => (measure: string) => ReadonlyArray<number>

const quarterMs = 15 * 60_000
const quarterAt = (at: number): number => Math.floor(at / quarterMs) * quarterMs

/**
 * The counts of each of `ids` under each of the measures in the last 24 hours: by default six bins of four hours, oldest first,
 * the last one ending at `nowMs`. A minute belongs to the bin that it begins in. Read are the quarters of an hour, the minutes of those quarters in
 * which a bin begins or ends, and the batches that are not added up yet. `team`: only of this team; null when the ids are known to be the caller's.
 * The bin of a row is computed in floating point: `extract` returns a decimal number, which takes half as long again.
 */
export const binsByMeasure = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team: string | null,
  ids: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  nowMs: number,
  bins = fewBins
): Effect.fn.Return<BinsOf, SqlError.SqlError> {
  const counts = new Map<string, Array<number>>()
  if (ids.length > 0) {
    const start = nowMs - spanMs
    const [from, to] = [new Date(start), new Date(nowMs)]
    const borders = Array.from({ length: bins + 1 }, (_, n) => quarterAt(start + (n * spanMs) / bins))
    const atBorders = sql.or(
      borders.map((at) => sql`minute >= ${new Date(at)} and minute < ${new Date(at + quarterMs)}`)
    )
    const names = (of: ReadonlyArray<string>) => sql.literal(of.map((name) => `'${name}'`).join(", "))
    const ofKeys = sql`${keyed(sql, [...new Set(ids)])} ${team === null ? sql.literal("") : sql`and team_id = ${team}`}`
    const inSpan = sql`measure in (${names(measures)}) and minute > ${from} and minute <= ${to}`
    const rows = yield* sql<{ key_id: string; measure: string; bin: number; count: number }>`
      with since as materialized (
        select to_timestamp(coalesce(max(value::float8), 0) / 1000) as at from settings where name = ${quartersFrom}
      ), counts as (
        select key_id, measure, minute, count from rollups
        where ${ofKeys} and ${inSpan} and (${atBorders} or minute < (select at from since))
        union all
        select key_id, ${sql.literal(measureOfQuarter("measure"))}, minute, count from rollups
        where ${ofKeys} and measure in (${names(measures.map(quarterMeasure))}) and minute > ${from} and minute < ${to}
          and minute <> all(${Columns.timestamptz(borders)}) and minute >= (select at from since)
        union all
        select key_id, measure, minute, count from counting where ${ofKeys} and ${inSpan}
      )
      select key_id, measure, bin, sum(count)::float8 as count
      from counts cross join lateral (
        select least(${bins}, width_bucket(date_part('epoch', minute - ${from}::timestamptz), 0, ${spanMs / 1000}, ${bins})) as bin
      ) b
      group by key_id, measure, bin`
    for (const { bin, count, key_id, measure } of rows) {
      const name = `${key_id} ${measure}`
      const of = counts.get(name) ?? noCounts(bins)
      of[bin - 1] = count
      counts.set(name, of)
    }
  }
  return (id) => (measure) => counts.get(`${id} ${measure}`) ?? noCounts(bins)
})

/** The same for the sum of several measures. */
export const rollupBins = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  ids: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  nowMs: number
): Effect.fn.Return<ReadonlyMap<string, ReadonlyArray<number>>, SqlError.SqlError> {
  const of = yield* binsByMeasure(sql, null, ids, measures, nowMs)
  return new Map(
    ids.map((id) => [id, noCounts().map((_, at) => total(measures.map((measure) => of(id)(measure)[at]!)))])
  )
})

/** The bins of an id without counts. */
export const noCounts = (bins = fewBins): Array<number> => Array.from({ length: bins }, () => 0)

export const total = (counts: ReadonlyArray<number>): number => counts.reduce((sum, count) => sum + count, 0)

/**
 * The slot for the counts of this process's control calls. It is above the slots of the journals, which write far more counts and must not wait. If
 * two processes draw the same slot, they share its rows, and the counts stay correct.
 */
export const controlSlot: number = 32_100 + randomInt(600)

/** The slot of hourly counts. Only retention writes it. */
export const hourSlot = -1
