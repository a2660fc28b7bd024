import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import { prefixes } from "@tidegate/model/Ids"
import type { EventMeasure } from "@tidegate/model/Metrics"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import { mapped } from "@tidegate/runtime/Resumable"
import * as Columns from "../journal/Columns.ts"
import { pairKey } from "../journal/CountStatement.ts"
import { asksRows, type EventFilter, plan } from "./EventPlan.ts"
import { eventTable } from "./EventRow.ts"
import type { Buckets } from "./Buckets.ts"
import {
  type Bucket,
  bucketsOf,
  countAtMost,
  type Counted,
  countOf,
  type Keys,
  readAtMost,
  type RowsOf
} from "./Tally.ts"
import { idsOf, type Stretch } from "./Window.ts"

/*
 * Counts events. Finished events are counted by the rollups, or by the rows of `events` when the rollups do not cover the filter;
 * waiting events by the rows of `deliveries`.
 */

/** Pairs of sources and destinations to look up; for more, rows are counted. */
const maxPairs = 500

/** The rollups that cover a filter: those of one kind of owner, or of pairs of sources and destinations; null: none. */
const keysOf = (team: string, filter: EventFilter): Keys | null => {
  if (asksRows(filter)) return null
  const { connections, destinations, sources } = filter
  const owners = [connections, destinations, sources].filter((ids) => ids.length > 0)
  if (owners.length <= 1) return { ids: owners[0] ?? [team], kept: "counts" }
  if (connections.length > 0 || sources.length * destinations.length > maxPairs) return null
  const pairs = sources.flatMap((source) => destinations.map((destination) => pairKey(source, destination)))
  return { ids: pairs, kept: "pairs" }
}

const measureOf = { SUCCESSFUL: "successful", FAILED: "failed", CANCELLED: "cancelled" } as const
type Ended = keyof typeof measureOf
const isEnded = (status: string): status is Ended => Object.hasOwn(measureOf, status)

/** Statuses that a pending event may have. */
const isPending = (status: EventStatus): boolean => status !== "SUCCESSFUL" && status !== "FAILED"

/** The events of a stretch of time that the filter's index finds, at most `atMost` of them, and the conditions left to check on each. */
const rowsOf = Effect.fnUntraced(function* (team: string, filter: EventFilter, stretch: Stretch, atMost: number) {
  const sql = yield* SqlClient.SqlClient
  const { among, bounds, driven, residual } = yield* plan(team, filter, idsOf(prefixes.event, stretch))
  const { statuses } = filter
  const hasFailed = statuses.length > 0 && statuses.every((status) => status === "FAILED" || status === "CANCELLED")
  return {
    residual,
    rows: sql`(
      select e.* from events e
      where ${sql.and([
        sql`e.team_id = ${team}`,
        ...bounds,
        ...driven,
        ...among,
        ...(hasFailed ? [sql.literal("e.failed")] : [])
      ])}
      limit ${atMost + 1}) e`
  }
})

/**
 * The waiting events of a stretch with what determines their status, at most `atMost` of them. Each is looked up by its id: a join would
 * read all events of the stretch for the few that wait.
 */
const waitingOf = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  stretch: Stretch,
  atMost: number,
  now: number
) {
  const sql = yield* SqlClient.SqlClient
  const { lower, upper } = idsOf(prefixes.event, stretch)
  const { among, bounds, driven, residual } = yield* plan(team, filter, { lower, upper })
  const table = eventTable(sql, now)
  const { connections } = filter
  return {
    status: table.status,
    matching: sql.and([sql.literal("true"), ...residual, ...driven, ...among]),
    rows: sql`(
      select event_id, due_at, ready_at, started_at from deliveries
      where connection_id = any(array(
          select id from connections where team_id = ${team}
          ${connections.length === 0 ? sql.literal("") : sql`and id = any(${Columns.text(connections)})`}
        ))
        and event_id >= ${lower} and event_id < ${upper}
      limit ${atMost + 1}
    ) q cross join lateral (
      select * from events e where ${sql.and([
        sql.literal("e.id = q.event_id and e.state = 'PENDING'"),
        sql`e.team_id = ${team}`,
        ...bounds
      ])}
      limit 1
    ) e ${sql.literal(table.joins)}`
  }
})

/** The rows of `events` as they are counted, of these states alone if any are named. */
const storedOf =
  (team: string, filter: EventFilter, states: ReadonlyArray<string> | null): RowsOf =>
  (stretch, atMost) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { residual, rows } = yield* rowsOf(team, filter, stretch, atMost)
      const state = states === null ? sql.literal("true") : sql`e.state = any(${Columns.text(states)})`
      return { rows, matching: sql.and([state, ...residual]) }
    })

/** How many events a stretch has. */
export const countEvents = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  whole: Stretch,
  atMost: number = countAtMost
): Effect.fn.Return<Counted, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const { statuses } = filter
  const ended = statuses.filter(isEnded)
  const waiting: RowsOf = (stretch, max) =>
    Effect.map(waitingOf(team, filter, stretch, max, now), ({ matching, rows, status }) => ({
      rows,
      matching: sql.and([matching, sql`${status} = any(${Columns.text(statuses)})`])
    }))
  const tally = {
    team,
    keys: keysOf(team, filter),
    measures: statuses.length === 0 ? ["created"] : ended.map((status) => measureOf[status]),
    rows: storedOf(team, filter, statuses.length === 0 ? null : ended),
    ...(statuses.some(isPending) ? { waiting } : {})
  }
  return yield* countOf(tally, whole, atMost)
})

/** The events of a bucket by status. */
export type EventBucket = Readonly<Record<Exclude<EventMeasure, "ignored_count">, number>>

/** A kind is a measure of the rollups, a stored state in lower case, or the status of a waiting event. */
const byStatus = (
  found: ReadonlyArray<Bucket>,
  statuses: ReadonlyArray<EventStatus>
): Effect.Effect<ReadonlyArray<EventBucket>> => {
  const has = (status: EventStatus): boolean => statuses.length === 0 || statuses.includes(status)
  const ofBucket = (of: Bucket): EventBucket => {
    const n = (kind: string): number => of.get(kind) ?? 0
    const only = (status: EventStatus, ...kinds: ReadonlyArray<string>): number =>
      has(status) ? kinds.reduce((sum, kind) => sum + n(kind), 0) : 0
    const parts = {
      delivered_count: only("SUCCESSFUL", "successful"),
      failed_count: only("FAILED", "failed"),
      queued_count: only("QUEUED", "QUEUED") + only("SCHEDULED", "SCHEDULED"),
      processing_count: only("QUEUED", "PROCESSING"),
      hold_count: only("HOLD", "HOLD")
    }
    const narrowed = Object.values(parts).reduce((sum, part) => sum + part, only("CANCELLED", "cancelled", "CANCELLED"))
    const all = n("created") + (of.has("created") ? 0 : n("successful") + n("failed") + n("cancelled") + n("pending"))
    return Object.assign(parts, { count: statuses.length === 0 ? all : narrowed })
  }
  return inReportSteps(mapped(found, ofBucket))
}

/**
 * Events by bucket. Null: too many rows would have to be read. `partial`: more events wait than are read, so the counts of
 * queued, delivering and held events are lower bounds.
 */
export const eventBuckets = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  buckets: Buckets,
  atMost: number = readAtMost
): Effect.fn.Return<
  { readonly buckets: ReadonlyArray<EventBucket>; readonly partial: boolean } | null,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const { statuses } = filter
  // A delivery is under way when its start is stored and no attempt was recorded after it.
  const { status } = eventTable(sql, now)
  const series = {
    team,
    keys: keysOf(team, filter),
    measures: statuses.length === 0 || statuses.some(isEnded) ? ["created", "successful", "failed", "cancelled"] : [],
    prefix: prefixes.event,
    id: "e.id",
    kind: sql.literal("lower(e.state)"),
    rows: storedOf(team, filter, null),
    ...(statuses.length === 0 || statuses.some(isPending)
      ? {
          waiting: (stretch: Stretch, max: number) => waitingOf(team, filter, stretch, max, now),
          waitingKind: sql`case when ${status} = 'QUEUED' and q.started_at >= coalesce(q.ready_at, q.due_at) then 'PROCESSING'
        else ${status} end`
        }
      : {})
  }
  const found = yield* bucketsOf(series, buckets, atMost)
  return found === null ? null : { buckets: yield* byStatus(found.buckets, statuses), partial: found.partial }
})
