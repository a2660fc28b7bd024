import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import { day, dropLeftovers, dropPartition, type Partition, partitions, startOfDay } from "./Partitions.ts"
import { removeBins } from "./RetentionBins.ts"
import { removeDeleted } from "./RetentionDeleted.ts"
import { removeHistory } from "./RetentionRuns.ts"
import { deleteRows, pruneRows, rewriteWithoutPayloads } from "./RetentionClearing.ts"
import {
  type DueDay,
  fillInTeams,
  forgetExpired,
  giveUpWaiting,
  hasWaitingEvents,
  isWaitedFor,
  removeOrphans
} from "./RetentionWaiting.ts"
import { compactRollups } from "./RollupCompaction.ts"

/** How long a team's data is kept, in days, unless the team has its own settings. */
export interface RetentionDefaults {
  readonly payloadDays: number
  /** At least as long as payloads: a payload without its record could not be found. */
  readonly recordDays: number
}

export const retentionDefaults: RetentionDefaults = { payloadDays: 30, recordDays: 90 }

/**
 * How long a day is kept beyond its time while something waits for it: as long as an event may be retried after its first
 * attempt. What still waits then is cancelled.
 */
export const waitingGraceDays = 7

/** The result of a run; days and tables are counted together. */
export interface Retained {
  readonly dropped: number
  readonly pruned: number
  /** Days that are kept for now, because something waits for them. */
  readonly held: number
  /** Waiting rows that were given up, and rows that could never be finished. */
  readonly cancelled: number
  readonly orphans: number
  readonly compacted: number
  readonly expired: number
}

interface TeamRow {
  readonly id: string
  readonly payload_retention_days: number | null
  readonly record_retention_days: number | null
  readonly payloads_cleared_to: Date | null
  readonly records_cleared_to: Date | null
}

/** Up to when (Unix ms, the start of a day) a team's days are due, and up to when they are cleared. */
interface Team {
  readonly id: string
  readonly payloads: { readonly dueBefore: number; readonly clearedTo: number }
  readonly records: { readonly dueBefore: number; readonly clearedTo: number }
}

type Kind = "payloads" | "records"

const teamOf =
  (defaults: RetentionDefaults, now: number) =>
  (row: TeamRow): Team => {
    const recordDays = row.record_retention_days ?? defaults.recordDays
    const payloadDays = Math.min(row.payload_retention_days ?? defaults.payloadDays, recordDays)
    return {
      id: row.id,
      payloads: {
        dueBefore: startOfDay(now - payloadDays * day),
        clearedTo: row.payloads_cleared_to?.getTime() ?? 0
      },
      records: { dueBefore: startOfDay(now - recordDays * day), clearedTo: row.records_cleared_to?.getTime() ?? 0 }
    }
  }

/** The teams that keep a day for that long, and whether it is due for others. */
const keepersOf = (teams: ReadonlyArray<Team>, kind: Kind, start: number, graceDays = 0) => {
  const keepers = teams.filter((team) => start >= team[kind].dueBefore - graceDays * day).map(({ id }) => id)
  return { keepers, isDue: keepers.length < teams.length }
}

/** Whether rows of a day have to be cleared one by one for some team. */
const isUncleared = (teams: ReadonlyArray<Team>, kind: Kind, start: number): boolean =>
  teams.some((team) => start < team[kind].dueBefore && start >= team[kind].clearedTo)

/**
 * Removes what no longer has to be kept: payloads first, records later, whole days by dropping their partitions. Every step is a
 * transaction of its own and checks itself whether there is something to do. So an interrupted run, or two runs at once, do no
 * harm, and the next run continues. A run with nothing due reads a few index entries and everything that waits.
 *
 * It uses the earlier of two clocks, this process's and the database's: a clock that is ahead must not delete data too early.
 */
export const retain = Effect.fnUntraced(function* (
  defaults: RetentionDefaults
): Effect.fn.Return<Retained, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [database] = yield* sql<{ now: Date }>`select now() as now`
  const now = Math.min(yield* Clock.currentTimeMillis, database!.now.getTime())
  const done = { dropped: 0, pruned: 0, held: 0, cancelled: 0 }

  yield* dropLeftovers
  yield* fillInTeams
  const orphans = yield* removeOrphans
  const compacted = yield* compactRollups(now)
  const expired =
    (yield* forgetExpired(now)) + (yield* removeBins(now)) + (yield* removeHistory(now, defaults.recordDays))

  const teams = (yield* sql<TeamRow>`
    select id, payload_retention_days, record_retention_days, payloads_cleared_to, records_cleared_to from teams`).map(
    teamOf(defaults, now)
  )
  let firstHeld = Number.POSITIVE_INFINITY
  for (const partitionsOfDay of byDay(yield* partitions)) {
    const { start } = partitionsOfDay[0]!
    const payloads = keepersOf(teams, "payloads", start)
    if (!payloads.isDue) break
    const due: DueDay = { start, keepers: payloads.keepers }
    if (yield* isWaitedFor(due)) {
      // A day that nothing waits for after this is still kept in this run: a delivery under way may yet be recorded.
      const late = keepersOf(teams, "payloads", start, waitingGraceDays)
      if (late.isDue) done.cancelled += yield* giveUpWaiting({ start, keepers: late.keepers })
      done.held++
      firstHeld = Math.min(firstHeld, start)
      continue
    }
    // A retry of the day's events may begin to wait at any time: the later check looks for retries made since then.
    const asked = now - day
    const isNeeded = hasWaitingEvents(due, asked)
    const gone = yield* clearDay(partitionsOfDay, teams, isNeeded)
    done.dropped += gone.dropped
    done.pruned += gone.pruned
  }
  yield* rememberCleared(teams, firstHeld)
  // Last: a row is removed after the records that name it.
  const deleted = yield* removeDeleted(now, defaults.recordDays)
  return { ...done, orphans, compacted, expired: expired + deleted }
})

const byDay = (all: ReadonlyArray<Partition>): ReadonlyArray<ReadonlyArray<Partition>> => [
  ...Map.groupBy(all, ({ start }) => start).values()
]

/** Clears what is due of one day; referring rows before those that they refer to. */
const clearDay = Effect.fnUntraced(function* <E, R>(
  all: ReadonlyArray<Partition>,
  teams: ReadonlyArray<Team>,
  isNeeded: Effect.Effect<boolean, E, R>
) {
  const { start } = all[0]!
  const done = { dropped: 0, pruned: 0 }
  const records = keepersOf(teams, "records", start)
  const payloads = keepersOf(teams, "payloads", start)
  const recordsKept = yield* hasRowsOf(all, records.keepers)
  const payloadsKept = yield* hasRowsOf(all, payloads.keepers)
  for (const partition of all.toReversed()) {
    const { table } = partition
    const [kind, { isDue, keepers }, isKept] =
      table.keptAs === "record"
        ? (["records", records, recordsKept] as const)
        : (["payloads", payloads, payloadsKept] as const)
    if (isDue && !isKept) {
      if (yield* dropPartition(partition, isNeeded)) done.dropped++
      continue
    }
    if (isDue && isUncleared(teams, kind, start)) yield* deleteRows(partition, keepers)
    if (table.payload === undefined || partition.isPruned || !payloads.isDue) continue
    if (payloadsKept) {
      if (isUncleared(teams, "payloads", start)) yield* pruneRows(partition, payloads.keepers)
    } else if (yield* rewriteWithoutPayloads(partition, isNeeded)) done.pruned++
  }
  return done
})

/** Whether a day has rows of one of these teams. All other rows of a team's day belong to a request or an event. */
const hasRowsOf = Effect.fnUntraced(function* (all: ReadonlyArray<Partition>, ids: ReadonlyArray<string>) {
  if (ids.length === 0) return false
  const sql = yield* SqlClient.SqlClient
  for (const { name, table } of all) {
    if (table.name !== "requests" && table.name !== "events") continue
    const [row] = yield* sql<{ found: boolean }>`
      select exists (select from ${sql.literal(name)} where team_id = any(${Columns.text(ids)})) as found`
    if (row?.found === true) return true
  }
  return false
})

/** Stores up to when each team's days are cleared, so that the next run need not read them row by row. */
const rememberCleared = Effect.fnUntraced(function* (teams: ReadonlyArray<Team>, firstHeld: number) {
  const policies = new Set(teams.map(({ payloads, records }) => `${payloads.dueBefore} ${records.dueBefore}`))
  // When all teams have the same settings, whole days are dropped, and there is nothing to store.
  if (policies.size < 2) return
  const sql = yield* SqlClient.SqlClient
  const until = (kind: Kind) => teams.map((team) => Math.min(team[kind].dueBefore, firstHeld))
  yield* sql`
    update teams set payloads_cleared_to = greatest(payloads_cleared_to, c.payloads),
      records_cleared_to = greatest(records_cleared_to, c.records)
    from unnest(${Columns.text(teams.map(({ id }) => id))}, ${Columns.timestamptz(until("payloads"))},
      ${Columns.timestamptz(until("records"))}) as c (id, payloads, records)
    where teams.id = c.id and (payloads_cleared_to is null or payloads_cleared_to < c.payloads
      or records_cleared_to is null or records_cleared_to < c.records)`
})
