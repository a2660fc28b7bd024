import { Clock, Effect } from "effect"
import { SqlClient, SqlError, type Statement } from "effect/sql"
import { idBound, type Prefix } from "@tidegate/model/Ids"
import { isTimedOut } from "../Database.ts"
import * as Columns from "../journal/Columns.ts"
import { day } from "../retention/Partitions.ts"
import { tables } from "../Tables.ts"
import { idRange, type IdRange } from "./Window.ts"

const minute = 60_000
const hour = 60 * minute

/**
 * The largest number of rows read for a series that the rollups do not have: half a second of the database's time. For more, the
 * caller has to narrow the window.
 */
export const readAtMost = 500_000
/** When a complete count takes too long, counting stops at this number, and the result is a lower bound. */
export const countAtMost = 100_000

/** Since when (Unix ms, whole hours) the rollups are complete: by the hour, and by the minute. */
export interface Since {
  readonly hours: number
  readonly minutes: number
}

const floor = (at: number, unit: number): number => Math.floor(at / unit) * unit
const ceil = (at: number, unit: number): number => Math.ceil(at / unit) * unit

/** The kinds of rollups: counts by id, and counts by pairs of ids, which were introduced later. */
export type Kept = "counts" | "pairs"

/** Since when the rollups are exact: the time of the migration that made them exact. */
const exactFrom: Readonly<Record<Kept, string>> = { counts: "counts_exact_from", pairs: "pair_counts_exact_from" }

/** The full hours since which counts are exact and stored. One hour is left out, because retention may be deleting it. */
const keptSince = (exact: number, now: number): Since => {
  const { hoursForDays, minutesForHours } = tables.rollups
  return {
    hours: Math.max(ceil(exact, hour), floor(now - hoursForDays * day, hour) + hour),
    minutes: floor(now - minutesForHours * hour, hour) + hour
  }
}

/**
 * What a count may read from rollups. It agrees with the list of the same filter. Rollups have a retention of their own, and
 * records that of their team. Where either is deleted, or where the previous version has counted, rows are counted.
 */
export const rolledSince = Effect.fnUntraced(function* (
  team: string,
  now: number,
  kept: Kept = "counts"
): Effect.fn.Return<Since, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ at: number }>`
    select greatest(0,
      (select max(value::float8) from settings where name in (${exactFrom.counts}, ${exactFrom[kept]})),
      (select extract(epoch from records_cleared_to) * 1000 from teams where id = ${team}),
      (select extract(epoch from to_date(min(right(c.relname, 8)), 'YYYYMMDD')) * 1000
        from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'events'::regclass)
    )::float8 as at`
  return keptSince(row?.at ?? 0, now)
})

/** What a series may read from rollups: all of them. A series shows the past, so it continues where records are deleted. */
const seriesSince = Effect.fnUntraced(function* (
  now: number,
  kept: Kept
): Effect.fn.Return<Since, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ at: number | null }>`
    select max(value::float8) as at from settings where name in (${exactFrom.counts}, ${exactFrom[kept]})`
  return keptSince(row?.at ?? 0, now)
})

/** A stretch of time (Unix ms); its end is excluded. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** The ids of records made in it. */
export const idsOf = (prefix: Prefix, { from, to }: Stretch): IdRange => idRange(prefix, { from, to: to - 1 })

/**
 * The parts of a stretch: whole units of the rollups; rows that are added; and rows that are subtracted from a unit that is
 * mostly inside.
 */
export interface Parts {
  readonly rolled: Stretch | null
  readonly added: ReadonlyArray<Stretch>
  readonly removed: ReadonlyArray<Stretch>
}

/** Splits a stretch. Without `removing` all parts are added, so that a limited count of rows gives a lower bound. */
export const partsOf = (whole: Stretch, since: Since, now: number, removing: boolean): Parts => {
  const { from, to } = whole
  const unitAt = (at: number): number => (at < since.minutes ? hour : minute)
  const start = Math.max(from, since.hours)
  if (start >= to) return { rolled: null, added: [whole], removed: [] }
  const added: Array<Stretch> = start > from ? [{ from, to: start }] : []
  const removed: Array<Stretch> = []

  const firstUnit = floor(start, unitAt(start))
  let first = start
  if (start > firstUnit) {
    const next = firstUnit + unitAt(start)
    if (removing && start - firstUnit < next - start) {
      removed.push({ from: firstUnit, to: start })
      first = firstUnit
    } else {
      added.push({ from: start, to: Math.min(next, to) })
      first = next
    }
  }
  const lastUnit = floor(to, unitAt(to))
  let last = to
  if (to > lastUnit && first < to) {
    const next = lastUnit + unitAt(to)
    // Almost nothing has a time in the future.
    if (removing && Math.min(next, Math.max(now, to)) - to < to - lastUnit) {
      removed.push({ from: to, to: next })
      last = next
    } else {
      added.push({ from: Math.max(lastUnit, start), to })
      last = lastUnit
    }
  }
  return first < last
    ? { rolled: { from: first, to: last }, added, removed }
    : { rolled: null, added: [whole], removed: [] }
}

/** The buckets of a series: `steps` of them, each `step` long (ms), starting at `from`. */
export interface Buckets extends Stretch {
  readonly step: number
}

/** The number of buckets. */
export const stepsOf = ({ from, step, to }: Buckets): number => Math.round((to - from) / step)

/** The parts of a series that are read from rows and from the rollups: whole buckets each, the rows before the rollups. */
export interface SeriesParts {
  readonly rows: Stretch | null
  readonly rolled: Stretch | null
}

/** Splits a series by what the rollups have. */
export const seriesParts = ({ from, step, to }: Buckets, since: Since): SeriesParts => {
  if (step < minute) return { rows: { from, to }, rolled: null }
  const exact = step % hour === 0 ? since.hours : Math.max(since.hours, since.minutes)
  const border = Math.min(to, from + Math.max(0, ceil(exact - from, step)))
  return { rows: from < border ? { from, to: border } : null, rolled: border < to ? { from: border, to } : null }
}

/** The same for the current rollups. `kept`: the rollups that cover the filter; null: none. */
export const partsOfSeries = Effect.fnUntraced(function* (
  buckets: Buckets,
  kept: Kept | null
): Effect.fn.Return<SeriesParts, SqlError.SqlError, SqlClient.SqlClient> {
  const { from, to } = buckets
  if (kept === null) return { rows: { from, to }, rolled: null }
  return seriesParts(buckets, yield* seriesSince(yield* Clock.currentTimeMillis, kept))
})

/**
 * Rows (kind, bucket, n, examined) from the rollups of these keys in a stretch of the series; `kind` is a measure. Buckets count
 * from one.
 */
export const rolledSeries = (
  sql: SqlClient.SqlClient,
  team: string,
  keys: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  { from, step }: Buckets,
  told: Stretch
): Statement.Fragment => sql`
  select measure as kind, (floor(date_part('epoch', minute - ${new Date(from)}::timestamptz) / ${step / 1000}::float8))::int4 + 1 as bucket,
    sum(count)::float8 as n, 0::float8 as examined
  from counted
  where key_id = any(${Columns.text(keys)}) and measure = any(${Columns.text(measures)}) and team_id = ${team}
    and minute >= ${new Date(told.from)} and minute < ${new Date(told.to)}
  group by 1, 2`

/** An SQL expression, and the joins that it needs. */
export interface Bucketed {
  readonly joins: Statement.Fragment
  readonly bucket: Statement.Fragment
}

/** With at most this many buckets, a row's bucket is found in one step. */
const fewBuckets = 64

/**
 * An SQL expression for the bucket of an id. It compares the times in ids, which no time zone affects. The database searches text
 * arrays linearly, so many buckets are searched in two steps, first among groups: with 3,000 buckets a row needs 110 comparisons.
 */
export const bucketOf = (
  sql: SqlClient.SqlClient,
  id: Statement.Fragment,
  prefix: Prefix,
  buckets: Buckets
): Bucketed => {
  const { from, step } = buckets
  const steps = stepsOf(buckets)
  const starts = Array.from({ length: steps }, (_, n) => idBound(prefix, from + n * step))
  const within = (bounds: Statement.Fragment) => sql`width_bucket(${id}, ${bounds} collate "C")`
  if (steps <= fewBuckets) return { joins: sql.literal(""), bucket: within(sql`${Columns.text(starts)}`) }
  const size = Math.ceil(Math.sqrt(steps))
  const groups = Array.from({ length: Math.ceil(steps / size) }, (_, n) => starts.slice(n * size, (n + 1) * size))
  return {
    // "offset 0" keeps the planner from computing each again wherever it is used.
    joins: sql`
      cross join lateral (select ${within(sql`${Columns.text(groups.map(([first]) => first!))}`)} as n offset 0) bucket_group
      join (
        select n, string_to_array(starts, ' ') as starts
        from unnest(${Columns.text(groups.map((of) => of.join(" ")))}) with ordinality as g (starts, n) offset 0
      ) grouped on grouped.n = bucket_group.n`,
    bucket: sql`((bucket_group.n - 1) * ${size}::int4 + ${within(sql.literal("grouped.starts"))})`
  }
}

/** An SQL expression for the counts of these keys in a stretch. */
export const rolledSum = (
  sql: SqlClient.SqlClient,
  team: string,
  keys: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  { from, to }: Stretch
): Statement.Fragment => sql`(
  select coalesce(sum(count), 0)::float8 from counted
  where key_id = any(${Columns.text(keys)}) and measure = any(${Columns.text(measures)}) and team_id = ${team}
    and minute >= ${new Date(from)} and minute < ${new Date(to)})`

/** A number of rows; when it is not exact, it is a lower bound. */
export interface Counted {
  readonly total: number
  readonly exact: boolean
}

/** More rows than any team has. */
const all = 1_000_000_000

/**
 * Counts all rows, within the time-out of a statement. After a time-out it counts up to a limit, and the result is a lower bound.
 */
export const countAll = <E, R>(
  count: (atMost: number) => Effect.Effect<Counted, E | SqlError.SqlError, R>
): Effect.Effect<Counted, E | SqlError.SqlError, R> =>
  Effect.catchIf(
    count(all),
    (error) => SqlError.isSqlError(error) && isTimedOut(error),
    () => count(countAtMost)
  )

interface Sum {
  readonly sign: number
  readonly n: number
  readonly examined: number
}

/** Rows (sign, n, examined) from the rollups. */
export const rolledPart = (rolled: Statement.Fragment, sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`select 1 as sign, ${rolled} as n, 0::float8 as examined`

/** The same from rows: those `from` that match. */
export const rowsPart = (
  sql: SqlClient.SqlClient,
  sign: 1 | -1,
  from: Statement.Fragment,
  matching: Statement.Fragment
): Statement.Fragment =>
  sql`select ${sql.literal(String(sign))} as sign, count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined from ${from}`

/** Reads several parts in one statement, so that all are of the same moment. */
export const together = (sql: SqlClient.SqlClient, parts: ReadonlyArray<Statement.Fragment>): Statement.Fragment =>
  sql.join(" union all ", false)(parts)

/**
 * Counts a stretch by its parts; `read` returns their statements. `rolled`: the rollups that cover the filter, if any do. When
 * too many rows would have to be subtracted from a unit, the unit is left out.
 */
export const countParts = Effect.fnUntraced(function* <R>(
  options: { readonly team: string; readonly whole: Stretch; readonly rolled: Kept | null; readonly atMost: number },
  read: (parts: Parts) => Effect.Effect<ReadonlyArray<Statement.Fragment>, SqlError.SqlError, R>
) {
  const sql = yield* SqlClient.SqlClient
  const { atMost, team, whole } = options
  const now = yield* Clock.currentTimeMillis
  const counted = Effect.fnUntraced(function* (parts: Parts) {
    const found = yield* sql<Sum>`${together(sql, yield* read(parts))}`.unprepared
    return {
      total: found.reduce((sum, { n, sign }) => sum + sign * n, 0),
      exact: found.every(({ examined }) => examined <= atMost)
    } satisfies Counted
  })
  if (options.rolled === null) return yield* counted({ rolled: null, added: [whole], removed: [] })
  const since = yield* rolledSince(team, now, options.rolled)
  const parts = partsOf(whole, since, now, true)
  const answer = yield* counted(parts)
  return answer.exact || parts.removed.length === 0 ? answer : yield* counted(partsOf(whole, since, now, false))
})

/** The stretches of rows, with their signs. */
export const signed = ({ added, removed }: Parts): ReadonlyArray<readonly [sign: 1 | -1, of: Stretch]> => [
  ...added.map((of) => [1, of] as const),
  ...removed.map((of) => [-1, of] as const)
]
