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
 * A series that the rollups do not hold is read from at most so many rows: half a second of the database's time. Whoever wants more narrows
 * the window.
 */
export const readAtMost = 500_000
/** A count of all that takes the database too long: it says then that there are at least so many. */
export const countAtMost = 100_000

/** From when on (Unix ms, whole hours) the rollups hold what there is: by the hour, and by the minute. */
export interface Since {
  readonly hours: number
  readonly minutes: number
}

const floor = (at: number, unit: number): number => Math.floor(at / unit) * unit
const ceil = (at: number, unit: number): number => Math.ceil(at / unit) * unit

/** What rollups are asked for: counts under ids, or under pairs of them, which are counted since later. */
export type Kept = "counts" | "pairs"

/** When the rollups became exact, by the migration that made them so. */
const exactFrom: Readonly<Record<Kept, string>> = { counts: "counts_exact_from", pairs: "pair_counts_exact_from" }

/** Whole hours since which counts are exact and kept; one is left for retention at work. */
const keptSince = (exact: number, now: number): Since => {
  const { hoursForDays, minutesForHours } = tables.rollups
  return {
    hours: Math.max(ceil(exact, hour), floor(now - hoursForDays * day, hour) + hour),
    minutes: floor(now - minutesForHours * hour, hour) + hour
  }
}

/**
 * What a count may read from rollups. It agrees with the list of the same filter: rollups are kept for a time of their own, records for that of
 * their team, and where either is gone, or the version before has counted, rows are counted.
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

/** What a series may read from rollups: all that they hold. It tells what has been, so it goes on where records are gone. */
const seriesSince = Effect.fnUntraced(function* (
  now: number,
  kept: Kept
): Effect.fn.Return<Since, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ at: number | null }>`
    select max(value::float8) as at from settings where name in (${exactFrom.counts}, ${exactFrom[kept]})`
  return keptSince(row?.at ?? 0, now)
})

/** A stretch of time (Unix ms), its end excluded. */
export interface Stretch {
  readonly from: number
  readonly to: number
}

/** The ids made in it. */
export const idsOf = (prefix: Prefix, { from, to }: Stretch): IdRange => idRange(prefix, { from, to: to - 1 })

/** What a stretch is made of: whole units of the rollups, and rows that are added or, of a unit that is mostly in it, taken off. */
export interface Parts {
  readonly rolled: Stretch | null
  readonly added: ReadonlyArray<Stretch>
  readonly removed: ReadonlyArray<Stretch>
}

/** The parts of a stretch. Without `removing` all are added, so that fewer rows than there are make less and never more. */
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
    // Next to nothing has been made in the future.
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

/** Buckets of a series: `steps` of them, each `step` long (ms), from `from` on. */
export interface Buckets extends Stretch {
  readonly step: number
}

/** How many they are. */
export const stepsOf = ({ from, step, to }: Buckets): number => Math.round((to - from) / step)

/** What of a series the rollups tell, and what is read from rows: whole buckets each, the rows before the rollups. */
export interface SeriesParts {
  readonly rows: Stretch | null
  readonly rolled: Stretch | null
}

/** The parts of a series by what the rollups hold. */
export const seriesParts = ({ from, step, to }: Buckets, since: Since): SeriesParts => {
  if (step < minute) return { rows: { from, to }, rolled: null }
  const exact = step % hour === 0 ? since.hours : Math.max(since.hours, since.minutes)
  const border = Math.min(to, from + Math.max(0, ceil(exact - from, step)))
  return { rows: from < border ? { from, to: border } : null, rolled: border < to ? { from: border, to } : null }
}

/** The same, as it is now. `kept`: the rollups that know the filter; null: none do. */
export const partsOfSeries = Effect.fnUntraced(function* (
  buckets: Buckets,
  kept: Kept | null
): Effect.fn.Return<SeriesParts, SqlError.SqlError, SqlClient.SqlClient> {
  const { from, to } = buckets
  if (kept === null) return { rows: { from, to }, rolled: null }
  return seriesParts(buckets, yield* seriesSince(yield* Clock.currentTimeMillis, kept))
})

/** Rows (kind, bucket, n, examined) of the rollups of these keys in a stretch of the series: a measure is a kind. Buckets count from one. */
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

/** An expression, and what has to be joined to the rows for it. */
export interface Bucketed {
  readonly joins: Statement.Fragment
  readonly bucket: Statement.Fragment
}

/** Buckets that are looked through for a row without further ado. */
const fewBuckets = 64

/**
 * The bucket of an id, as an expression: one time in it is compared with the others', whatever zone anybody is in. The database looks through
 * texts one after the other, so many buckets are looked up in two steps, a group of them first: 3,000 buckets cost a row 110 looks.
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
    // "offset 0": each is found once, and not again wherever it is named.
    joins: sql`
      cross join lateral (select ${within(sql`${Columns.text(groups.map(([first]) => first!))}`)} as n offset 0) bucket_group
      join (
        select n, string_to_array(starts, ' ') as starts
        from unnest(${Columns.text(groups.map((of) => of.join(" ")))}) with ordinality as g (starts, n) offset 0
      ) grouped on grouped.n = bucket_group.n`,
    bucket: sql`((bucket_group.n - 1) * ${size}::int4 + ${within(sql.literal("grouped.starts"))})`
  }
}

/** What has been counted of these keys in a stretch, as an expression. */
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

/** A number of rows; where it is not exact, there are at least so many. */
export interface Counted {
  readonly total: number
  readonly exact: boolean
}

/** More rows than there are of any team. */
const all = 1_000_000_000

/** Counts all rows, however many, for as long as a statement may take; then as many as are soon read, which is no exact count. */
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

/** Rows (sign, n, examined): what the rollups tell. */
export const rolledPart = (rolled: Statement.Fragment, sql: SqlClient.SqlClient): Statement.Fragment =>
  sql`select 1 as sign, ${rolled} as n, 0::float8 as examined`

/** The same of rows: those `from` that match. */
export const rowsPart = (
  sql: SqlClient.SqlClient,
  sign: 1 | -1,
  from: Statement.Fragment,
  matching: Statement.Fragment
): Statement.Fragment =>
  sql`select ${sql.literal(String(sign))} as sign, count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined from ${from}`

/** The rows of several parts, by one statement: they are of one moment. */
export const together = (sql: SqlClient.SqlClient, parts: ReadonlyArray<Statement.Fragment>): Statement.Fragment =>
  sql.join(" union all ", false)(parts)

/**
 * Counts a stretch by its parts, of which `read` makes the rows above. `rolled`: which rollups tell of it, if any do. A unit that would
 * have to be looked through to take rows off, and has too many, is left out.
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

/** The stretches of rows, with the sign that each counts with. */
export const signed = ({ added, removed }: Parts): ReadonlyArray<readonly [sign: 1 | -1, of: Stretch]> => [
  ...added.map((of) => [1, of] as const),
  ...removed.map((of) => [-1, of] as const)
]
