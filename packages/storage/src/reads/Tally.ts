import { Clock, Duration, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Prefix } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { bucketOf, type Buckets, stepsOf } from "./Buckets.ts"
import { type Kept, type Parts, partsOf, partsOfSeries, rolledSince } from "./Rolled.ts"
import type { Stretch } from "./Window.ts"

/*
 * Counts the records of a team that match a filter: events, requests or ignored events. The rollups count them where they cover
 * the filter, and the rows of their table otherwise. Each count is one statement, so that a record is in exactly one of its parts.
 */

type Fragment = Statement.Fragment

/**
 * The largest number of rows read for a series that the rollups do not have: half a second of the database's time. For more, the
 * caller has to narrow the window.
 */
export const readAtMost = 500_000
/** When a complete count takes too long, counting stops at this number, and the result is a lower bound. */
export const countAtMost = 100_000

/** A number of rows; when it is not exact, it is a lower bound. */
export interface Counted {
  readonly total: number
  readonly exact: boolean
}

/** More rows than any team has. */
const all = 1_000_000_000

/**
 * How long a complete count may take. With what a count up to a limit may take (the time-out of a report), it is less than the caller
 * waits.
 */
const completeWithin = Duration.seconds(5)

/** Counts all rows. If this takes too long, it counts up to a limit, and the result is a lower bound. */
export const countAll = <E, R>(
  count: (atMost: number) => Effect.Effect<Counted, E | SqlError.SqlError, R>
): Effect.Effect<Counted, E | SqlError.SqlError, R> =>
  Effect.timeoutOrElse(count(all), { duration: completeWithin, orElse: () => count(countAtMost) })

/** Rows to count. */
export interface Counting {
  /** Those that an index finds, limited in number. */
  readonly rows: Fragment
  /** The conditions left to check on each. */
  readonly matching: Fragment
}

/** How the rows of a stretch of time are read, at most so many. */
export type RowsOf = (
  stretch: Stretch,
  atMost: number
) => Effect.Effect<Counting, SqlError.SqlError, SqlClient.SqlClient>

/** The rollups that cover a filter. */
export interface Keys {
  readonly ids: ReadonlyArray<string>
  readonly kept: Kept
}

/** What is counted. */
export interface Tally {
  readonly team: string
  /** Null: no rollups cover the filter. */
  readonly keys: Keys | null
  /** The measures of the rollups. None: the records are not counted by rollups or by the rows of their table. */
  readonly measures: ReadonlyArray<string>
  readonly rows: RowsOf
  /** Rows that are also counted, whatever the time range: waiting events. */
  readonly waiting?: RowsOf
}

interface Sum {
  readonly sign: number
  readonly n: number
  readonly examined: number
}

/** Rows (sign, n, examined) from the rollups of these keys in a stretch. */
const rolledPart = (
  sql: SqlClient.SqlClient,
  team: string,
  keys: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  { from, to }: Stretch
): Fragment => sql`
  select 1 as sign, (
    select coalesce(sum(count), 0)::float8 from counted
    where key_id = any(${Columns.text(keys)}) and measure = any(${Columns.text(measures)}) and team_id = ${team}
      and minute >= ${new Date(from)} and minute < ${new Date(to)}) as n, 0::float8 as examined`

/** The same from rows: those `from` that match. */
const rowsPart = (sql: SqlClient.SqlClient, sign: 1 | -1, from: Fragment, matching: Fragment): Fragment =>
  sql`select ${sql.literal(String(sign))} as sign, count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined from ${from}`

/** Reads several parts in one statement, so that all are of the same moment. */
const together = (sql: SqlClient.SqlClient, parts: ReadonlyArray<Fragment>): Fragment =>
  sql.join(" union all ", false)(parts)

/** The stretches of rows, with their signs. */
const signed = ({ added, removed }: Parts): ReadonlyArray<readonly [sign: 1 | -1, of: Stretch]> => [
  ...added.map((of) => [1, of] as const),
  ...removed.map((of) => [-1, of] as const)
]

/**
 * Counts a stretch by its parts; `read` returns their statements. `rolled`: the rollups that cover the filter, if any do. When
 * too many rows would have to be subtracted from a unit, the unit is left out.
 */
const countParts = Effect.fnUntraced(function* <R>(
  options: { readonly team: string; readonly whole: Stretch; readonly rolled: Kept | null; readonly atMost: number },
  read: (parts: Parts) => Effect.Effect<ReadonlyArray<Fragment>, SqlError.SqlError, R>
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

/** How many records a stretch has. */
export const countOf = Effect.fnUntraced(function* (
  { keys, measures, rows, team, waiting }: Tally,
  whole: Stretch,
  atMost: number = countAtMost
): Effect.fn.Return<Counted, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* countParts(
    { team, whole, rolled: keys?.kept ?? null, atMost },
    Effect.fnUntraced(function* (parts) {
      const made: Array<Fragment> = []
      if (measures.length > 0) {
        const { rolled } = parts
        if (rolled !== null && keys !== null) made.push(rolledPart(sql, team, keys.ids, measures, rolled))
        for (const [sign, stretch] of signed(parts)) {
          const { matching, rows: found } = yield* rows(stretch, atMost)
          made.push(rowsPart(sql, sign, found, matching))
        }
      }
      if (waiting !== undefined) {
        const { matching, rows: found } = yield* waiting(whole, atMost)
        made.push(rowsPart(sql, 1, found, matching))
      }
      return made
    })
  )
})

/** What is counted by bucket and by kind. */
export interface Series extends Tally {
  /** The prefix of the records' ids, and an SQL expression for the id of a row. */
  readonly prefix: Prefix
  readonly id: string
  /** An SQL expression for the kind of a row; the kind of a count of the rollups is its measure. */
  readonly kind: Fragment
  /** The same for a waiting row, in capitals, which tell these kinds from the others. */
  readonly waitingKind?: Fragment
}

/** The counts of a bucket by kind. */
export type Bucket = ReadonlyMap<string, number>

interface Row {
  readonly kind: string
  readonly bucket: number
  readonly n: number
  readonly examined: number
}

/**
 * Rows (kind, bucket, n, examined) from the rollups of these keys in a stretch of the series; `kind` is a measure. Buckets count
 * from one.
 */
const rolledSeries = (
  sql: SqlClient.SqlClient,
  team: string,
  keys: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  { from, step }: Buckets,
  { from: first, to: end }: Stretch
): Fragment => sql`
  select measure as kind, (floor(date_part('epoch', minute - ${new Date(from)}::timestamptz) / ${step / 1000}::float8))::int4 + 1 as bucket,
    sum(count)::float8 as n, 0::float8 as examined
  from counted
  where key_id = any(${Columns.text(keys)}) and measure = any(${Columns.text(measures)}) and team_id = ${team}
    and minute >= ${new Date(first)} and minute < ${new Date(end)}
  group by 1, 2`

/**
 * Counts by bucket. Null: too many rows would have to be read. `partial`: more rows wait than are read, so their counts are lower
 * bounds.
 */
export const bucketsOf = Effect.fnUntraced(function* (
  { id, keys, kind, measures, prefix, rows, team, waiting, waitingKind = kind }: Series,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<
  { readonly buckets: ReadonlyArray<Bucket>; readonly partial: boolean } | null,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const { bucket, joins } = bucketOf(sql, sql.literal(id), prefix, buckets)
  const counting = (of: Fragment, { matching, rows: found }: Counting) => sql`select ${of} as kind, ${bucket} as bucket,
      count(*) filter (where ${matching})::float8 as n, count(*)::float8 as examined
    from ${found} ${joins} group by 1, 2`
  const parts: Array<Fragment> = []
  if (measures.length > 0) {
    const { rolled, rows: older } = yield* partsOfSeries(buckets, keys?.kept ?? null)
    if (rolled !== null && keys !== null) parts.push(rolledSeries(sql, team, keys.ids, measures, buckets, rolled))
    if (older !== null) parts.push(counting(kind, yield* rows(older, atMost)))
  }
  if (waiting !== undefined) parts.push(counting(waitingKind, yield* waiting(buckets, atMost)))
  const found = yield* sql<Row>`${together(sql, parts)}`.unprepared

  const isWaiting = (row: Row): boolean => row.kind === row.kind.toUpperCase()
  const examined = (of: ReadonlyArray<Row>): number => of.reduce((sum, row) => sum + row.examined, 0)
  if (examined(found.filter((row) => !isWaiting(row))) > atMost) return null
  const counts = Array.from({ length: stepsOf(buckets) }, () => new Map<string, number>())
  for (const { bucket, kind, n } of found) counts[bucket - 1]?.set(kind, n)
  return { buckets: counts, partial: examined(found.filter(isWaiting)) > atMost }
})
