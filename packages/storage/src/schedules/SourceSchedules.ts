import { Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { type ScheduleSettings, scheduledType } from "@tidegate/model/ScheduledSource"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"
import { compileSchedule } from "@tidegate/workflows/triggers/Schedule"
import * as Columns from "../journal/Columns.ts"
import type { Owner } from "../secrets/SealedColumn.ts"

/* When sources of type CRON make their next requests. A source that is disabled has no row: it misses nothing. */

/** The part of a source's row that its schedule depends on. */
export interface ScheduledRow extends Owner {
  readonly config: { readonly schedule?: ScheduleSettings }
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
}

/** The schedule by which the source makes requests now; null: it makes none. */
const activeOf = (row: ScheduledRow | null): ScheduleSettings | null =>
  row === null || row.disabled_at !== null || row.deleted_at !== null ? null : (row.config.schedule ?? null)

const hasSameTimes = (one: ScheduleSettings, other: ScheduleSettings): boolean =>
  one.cron === other.cron && one.timezone === other.timezone

/** The first time after `at`. Null: there is none, or the expression cannot be read: then it makes nothing. */
const nextOf = ({ cron, timezone }: ScheduleSettings, at: Date): Date | null => {
  const next = Result.getOrNull(compileSchedule(cron, timezone))?.after(at.getTime()) ?? null
  return next === null ? null : new Date(next)
}

/**
 * Brings the row in line with a changed source, in its transaction. New times begin with the first one after `at`; another body, or another
 * rule for missed times, leaves the next time as it is.
 */
export const keepSchedule = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: ScheduledRow | null,
  after: ScheduledRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  const [was, is] = [activeOf(before), activeOf(after)]
  if (is === null) {
    if (was !== null) yield* sql`delete from source_schedules where source_id = ${after.id}`
    return
  }
  if (was !== null && hasSameTimes(was, is)) return
  yield* sql`
    insert into source_schedules (source_id, team_id, due_at) values (${after.id}, ${after.team_id}, ${nextOf(is, at)})
    on conflict (source_id) do update set due_at = excluded.due_at`
})

/** The next times of these sources, by their ids. One that is disabled has none. */
export const nextTimesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  rows: ReadonlyArray<ScheduledRow>
): Effect.fn.Return<ReadonlyMap<string, Date | null>, SqlError.SqlError> {
  const ids = rows.filter((row) => activeOf(row) !== null).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const found = yield* sql<{ source_id: string; due_at: Date | null }>`
    select source_id, due_at from source_schedules where source_id = any(${Columns.text(ids)})`
  return new Map(found.map(({ due_at, source_id }) => [source_id, due_at]))
})

/** Fails when the team has as many sources of type CRON as it may. The lock keeps creates at once apart. */
export const claimSchedule = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, team_id }: Owner
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const limit = (yield* TeamLimits)["scheduled_sources"]!
  yield* sql`select pg_advisory_xact_lock(hashtextextended(${`scheduled_sources/${team_id}`}, 0))`
  const others = yield* sql`
    select from sources where team_id = ${team_id} and type = ${scheduledType} and deleted_at is null and id <> ${id} limit ${limit}`
  if (others.length >= limit) yield* beyondLimit("scheduled_sources", limit, "delete one first")
})
