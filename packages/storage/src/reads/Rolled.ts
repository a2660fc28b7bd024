import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { day } from "../retention/Partitions.ts"
import { tables } from "../Tables.ts"
import type { Buckets } from "./Buckets.ts"
import type { Stretch } from "./Window.ts"

/** Which parts of a count are read from rollups, and which from rows. */

const minute = 60_000
const hour = 60 * minute

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
 * The part of a count that may be read from rollups. A count must agree with the list of the same filter. Rollups have a retention of their own, and
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

/** The part of a series that may be read from rollups: all of them. A series shows the past, so it continues where records are deleted. */
const seriesSince = Effect.fnUntraced(function* (
  now: number,
  kept: Kept
): Effect.fn.Return<Since, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ at: number | null }>`
    select max(value::float8) as at from settings where name in (${exactFrom.counts}, ${exactFrom[kept]})`
  return keptSince(row?.at ?? 0, now)
})

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
